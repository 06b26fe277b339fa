// Requests to the server of this page.

export async function get(name, query = {}) {
  return read(await fetch(`/api/${name}?${new URLSearchParams(query)}`, { cache: "no-store" }));
}

export async function post(name, body) {
  return read(await fetch(`/api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

export async function positions() {
  const response = await fetch("/api/map", { cache: "no-store" });
  if (!response.ok) throw new Error(`the map: status ${response.status}`);
  return new Float32Array(await response.arrayBuffer());
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function read(response) {
  const values = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error(values.error ?? `status ${response.status}`);
  return values;
}
