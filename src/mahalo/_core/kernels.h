/* The innermost loops, compiled once for each generation of x86 vector units and chosen at load time. */
#ifndef MAHALO_KERNELS_H
#define MAHALO_KERNELS_H

#include <math.h>
#include <stddef.h>

#ifndef __has_attribute
#define __has_attribute(name) 0
#endif

/* What goes beyond C99 is for compilers that know it; MAHALO_PLAIN builds what the others get. */
#if defined(__GNUC__) && !defined(MAHALO_PLAIN)
#define MAHALO_GNU
#endif

/* Clones are chosen through an ifunc, which takes glibc (any of its headers says so; musl has none). They are named by
   what a processor can do; those named after one model run on that model only. */
#if defined(MAHALO_GNU) && defined(__x86_64__) && defined(__GLIBC__) && __has_attribute(target_clones)
#if defined(__clang__) || __GNUC__ < 12
#define MAHALO_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MAHALO_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#else
#define MAHALO_VECTORIZED
#endif

#if defined(MAHALO_GNU)
#define MAHALO_INLINED static inline __attribute__((always_inline))
#define MAHALO_RESTRICT __restrict__
#elif defined(_MSC_VER)
#define MAHALO_INLINED static __forceinline
#define MAHALO_RESTRICT __restrict
#else
#define MAHALO_INLINED static inline
#define MAHALO_RESTRICT
#endif

/* `width` columns of F ← F + beta x xᵀ and of y = F z. As F is symmetric, y is the sum of its rows scaled by z: the
   sums, like x, stay in registers while the rows pass by. */
MAHALO_INLINED
void mahalo_columns(double *MAHALO_RESTRICT F, const double *MAHALO_RESTRICT x_here, const double *MAHALO_RESTRICT x,
                    double beta, const double *MAHALO_RESTRICT z, double *MAHALO_RESTRICT y, ptrdiff_t r,
                    const int width)
{
    double sum[32], scaled[32];
    for (int k = 0; k < width; k++) {
        sum[k] = 0.0;
        scaled[k] = beta * x_here[k];
    }
    for (ptrdiff_t a = 0; a < r; a++) {
        double *row = F + a * r;
        double xa = x[a], za = z[a];
        for (int k = 0; k < width; k++) {
            double f = row[k] + xa * scaled[k];
            row[k] = f;
            sum[k] += za * f;
        }
    }
    for (int k = 0; k < width; k++)
        y[k] = sum[k];
}

/* F ← F + beta x xᵀ, then y = F z, in one pass over a symmetric F whose order r is a multiple of 8; returns zᵀ F z. */
MAHALO_VECTORIZED
static double mahalo_update_multiply(double *F, const double *x, double beta, const double *z, double *y, ptrdiff_t r)
{
    ptrdiff_t c = 0;
    double p = 0.0;
    for (; c + 32 <= r; c += 32)
        mahalo_columns(F + c, x + c, x, beta, z, y + c, r, 32);
    for (; c < r; c += 8)
        mahalo_columns(F + c, x + c, x, beta, z, y + c, r, 8);
    for (ptrdiff_t a = 0; a < r; a++)
        p += z[a] * y[a];
    return p;
}

/* F += beta x yᵀ for a square row-major F of order r. */
MAHALO_VECTORIZED
static void mahalo_rank_one(double *MAHALO_RESTRICT F, const double *x, const double *y, double beta, ptrdiff_t r)
{
    for (ptrdiff_t a = 0; a < r; a++) {
        double *row = F + a * r;
        double scaled = beta * x[a];
        for (ptrdiff_t b = 0; b < r; b++)
            row[b] += scaled * y[b];
    }
}

/* The upper triangle of F[first:, first:] += beta x xᵀ, x being an earlier row of F. */
MAHALO_VECTORIZED
static void mahalo_rank_one_upper(double *MAHALO_RESTRICT F, const double *x, double beta, ptrdiff_t r, ptrdiff_t first)
{
    for (ptrdiff_t a = first; a < r; a++) {
        double *row = F + a * r;
        double scaled = beta * x[a];
        for (ptrdiff_t b = a; b < r; b++)
            row[b] += scaled * x[b];
    }
}

/* out[e] = Y[i] − Y[j] over edges e = (i, j). */
MAHALO_VECTORIZED
static void mahalo_edge_rows(const double *MAHALO_RESTRICT Y, const ptrdiff_t *tail, const ptrdiff_t *head,
                             double *MAHALO_RESTRICT out, ptrdiff_t n_edges, ptrdiff_t r)
{
    for (ptrdiff_t e = 0; e < n_edges; e++) {
        const double *yi = Y + tail[e] * r, *yj = Y + head[e] * r;
        for (ptrdiff_t k = 0; k < r; k++)
            out[e * r + k] = yi[k] - yj[k];
    }
}

/* out[e] = (A[i] − A[j]) · (B[i] − B[j]) over edges e = (i, j): one function for each precision. */
#define MAHALO_EDGE_DOTS(name, real)                                                                    \
    MAHALO_VECTORIZED                                                                                   \
    static void name(const real *A, const real *B, const ptrdiff_t *tail, const ptrdiff_t *head, double *out,  \
                     ptrdiff_t n_edges, ptrdiff_t r)                                                    \
    {                                                                                                   \
        for (ptrdiff_t e = 0; e < n_edges; e++) {                                                       \
            const real *ai = A + tail[e] * r, *aj = A + head[e] * r;                                    \
            const real *bi = B + tail[e] * r, *bj = B + head[e] * r;                                    \
            real total = 0;                                                                             \
            for (ptrdiff_t k = 0; k < r; k++)                                                           \
                total += (ai[k] - aj[k]) * (bi[k] - bj[k]);                                             \
            out[e] = total;                                                                             \
        }                                                                                               \
    }

MAHALO_EDGE_DOTS(mahalo_edge_dots_d, double)
MAHALO_EDGE_DOTS(mahalo_edge_dots_s, float)

/* out[i] = Σ_{e=(i,j)} weight[e] (Y[i] − Y[j]) for first ≤ i < last: one function for each precision. The sums of
   MAHALO_WIDTH columns stay in registers while the edges of a row pass by; those of the last few are added up in memory. */
#define MAHALO_WIDTH 64
#define MAHALO_EDGE_LAPLACIAN(name, real)                                                               \
    MAHALO_VECTORIZED                                                                                   \
    static void name(const real *MAHALO_RESTRICT Y, const ptrdiff_t *start, const ptrdiff_t *neighbour, \
                     const ptrdiff_t *edge, const double *weight, real *MAHALO_RESTRICT out, ptrdiff_t first,\
                     ptrdiff_t last, ptrdiff_t r)                                                       \
    {                                                                                                   \
        for (ptrdiff_t i = first; i < last; i++) {                                                      \
            const real *yi = Y + i * r;                                                                 \
            real *zi = out + i * r;                                                                     \
            ptrdiff_t c = 0;                                                                            \
            for (; c + MAHALO_WIDTH <= r; c += MAHALO_WIDTH) {                                          \
                real sum[MAHALO_WIDTH];                                                                 \
                for (int k = 0; k < MAHALO_WIDTH; k++)                                                  \
                    sum[k] = 0;                                                                         \
                for (ptrdiff_t q = start[i]; q < start[i + 1]; q++) {                                   \
                    real w = (real)weight[edge[q]];                                                     \
                    if (w != 0) {                                                                       \
                        const real *yj = Y + neighbour[q] * r + c;                                      \
                        for (int k = 0; k < MAHALO_WIDTH; k++)                                          \
                            sum[k] += w * (yi[c + k] - yj[k]);                                          \
                    }                                                                                   \
                }                                                                                       \
                for (int k = 0; k < MAHALO_WIDTH; k++)                                                  \
                    zi[c + k] = sum[k];                                                                 \
            }                                                                                           \
            for (ptrdiff_t k = c; k < r; k++)                                                           \
                zi[k] = 0;                                                                              \
            for (ptrdiff_t q = start[i]; q < start[i + 1] && c < r; q++) {                              \
                real w = (real)weight[edge[q]];                                                         \
                if (w != 0) {                                                                           \
                    const real *yj = Y + neighbour[q] * r;                                              \
                    for (ptrdiff_t k = c; k < r; k++)                                                   \
                        zi[k] += w * (yi[k] - yj[k]);                                                   \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

MAHALO_EDGE_LAPLACIAN(mahalo_edge_laplacian_d, double)
MAHALO_EDGE_LAPLACIAN(mahalo_edge_laplacian_s, float)

/* Products with matrices whose order r is a multiple of 8, a tile of 4 rows and 8 columns at a time with its sums in
   registers. Compilers keep them there if they are written as vectors and their loops are unrolled; others get loops
   over single columns, `mahalo_four` being one number then. */
#if defined(MAHALO_GNU)
typedef double mahalo_four __attribute__((vector_size(32), aligned(8), may_alias));
#define MAHALO_FOURS 2 /* in 8 columns */
#define MAHALO_SUM(v) ((v[0] + v[1]) + (v[2] + v[3]))
#if defined(__clang__)
#define MAHALO_UNROLLED _Pragma("unroll")
#else
#define MAHALO_UNROLLED _Pragma("GCC unroll 8")
#endif
#else
typedef double mahalo_four;
#define MAHALO_FOURS 8
#define MAHALO_SUM(v) (v)
#define MAHALO_UNROLLED
#endif

#define MAHALO_ROWS 4

/* sum[i] += Σ_a Z[i, a] X[a, :8] over first ≤ a < last, for `rows` rows of Z. */
MAHALO_INLINED
void mahalo_add_products(mahalo_four (*sum)[MAHALO_FOURS], const double *MAHALO_RESTRICT Z,
                         const double *MAHALO_RESTRICT X, ptrdiff_t r, ptrdiff_t first, ptrdiff_t last, const int rows)
{
    for (ptrdiff_t a = first; a < last; a++) {
        const mahalo_four *row = (const mahalo_four *)(X + a * r);
        MAHALO_UNROLLED
        for (int i = 0; i < rows; i++)
            MAHALO_UNROLLED
            for (int k = 0; k < MAHALO_FOURS; k++)
                sum[i][k] += Z[i * r + a] * row[k];
    }
}

/* out[e] = zᵀ X z over `rows` rows z of Z, for a symmetric X. Its tiles above the diagonal are not read: those below count
   twice. */
MAHALO_INLINED
void mahalo_lengths_of(const double *MAHALO_RESTRICT Z, const double *MAHALO_RESTRICT X, double *MAHALO_RESTRICT out,
                       ptrdiff_t r, const int rows)
{
    mahalo_four total[MAHALO_ROWS][MAHALO_FOURS];
    MAHALO_UNROLLED
    for (int i = 0; i < rows; i++)
        MAHALO_UNROLLED
        for (int k = 0; k < MAHALO_FOURS; k++)
            total[i][k] = (mahalo_four){0.0};
    for (ptrdiff_t c = 0; c < r; c += 8) {
        mahalo_four sum[MAHALO_ROWS][MAHALO_FOURS];
        MAHALO_UNROLLED
        for (int i = 0; i < rows; i++)
            MAHALO_UNROLLED
            for (int k = 0; k < MAHALO_FOURS; k++)
                sum[i][k] = (mahalo_four){0.0};
        mahalo_add_products(sum, Z, X + c, r, c + 8, r, rows);
        MAHALO_UNROLLED
        for (int i = 0; i < rows; i++)
            MAHALO_UNROLLED
            for (int k = 0; k < MAHALO_FOURS; k++)
                sum[i][k] += sum[i][k];
        mahalo_add_products(sum, Z, X + c, r, c, c + 8, rows);
        MAHALO_UNROLLED
        for (int i = 0; i < rows; i++) {
            const mahalo_four *z = (const mahalo_four *)(Z + i * r + c);
            MAHALO_UNROLLED
            for (int k = 0; k < MAHALO_FOURS; k++)
                total[i][k] += sum[i][k] * z[k];
        }
    }
    MAHALO_UNROLLED
    for (int i = 0; i < rows; i++) {
        out[i] = 0.0;
        MAHALO_UNROLLED
        for (int k = 0; k < MAHALO_FOURS; k++)
            out[i] += MAHALO_SUM(total[i][k]);
    }
}

/* out[e] = zᵀ X z over the rows z of Z, for a symmetric X. */
MAHALO_VECTORIZED
static void mahalo_lengths(const double *Z, const double *X, double *out, ptrdiff_t n, ptrdiff_t r)
{
    ptrdiff_t e = 0;
    for (; e + MAHALO_ROWS <= n; e += MAHALO_ROWS)
        mahalo_lengths_of(Z + e * r, X, out + e, r, MAHALO_ROWS);
    for (; e < n; e++)
        mahalo_lengths_of(Z + e * r, X, out + e, r, 1);
}

/* Rows a … a + 3 and columns c … c + 7 of H += Σ_e weight_e z zᵀ over the n rows z of Z. */
MAHALO_INLINED
void mahalo_gram_tile(const double *MAHALO_RESTRICT Z, const double *MAHALO_RESTRICT weight,
                      double *MAHALO_RESTRICT H, ptrdiff_t n, ptrdiff_t r, ptrdiff_t a, ptrdiff_t c)
{
    mahalo_four sum[MAHALO_ROWS][MAHALO_FOURS];
    MAHALO_UNROLLED
    for (int i = 0; i < MAHALO_ROWS; i++)
        MAHALO_UNROLLED
        for (int k = 0; k < MAHALO_FOURS; k++)
            sum[i][k] = ((mahalo_four *)(H + (a + i) * r + c))[k];
    for (ptrdiff_t e = 0; e < n; e++) {
        const double *z = Z + e * r;
        MAHALO_UNROLLED
        for (int k = 0; k < MAHALO_FOURS; k++) {
            mahalo_four scaled = weight[e] * ((const mahalo_four *)(z + c))[k];
            MAHALO_UNROLLED
            for (int i = 0; i < MAHALO_ROWS; i++)
                sum[i][k] += z[a + i] * scaled;
        }
    }
    MAHALO_UNROLLED
    for (int i = 0; i < MAHALO_ROWS; i++)
        MAHALO_UNROLLED
        for (int k = 0; k < MAHALO_FOURS; k++)
            ((mahalo_four *)(H + (a + i) * r + c))[k] = sum[i][k];
}

/* The tiles of H += Σ_e weight_e z zᵀ that hold its lower triangle. */
MAHALO_INLINED
void mahalo_add_gram(const double *Z, const double *weight, double *H, ptrdiff_t n, ptrdiff_t r)
{
    for (ptrdiff_t c = 0; c < r; c += 8)
        for (ptrdiff_t a = c; a < r; a += MAHALO_ROWS)
            mahalo_gram_tile(Z, weight, H, n, r, a, c);
}

/* The upper triangle of H, from the lower. */
MAHALO_INLINED
void mahalo_mirror(double *H, ptrdiff_t r)
{
    for (ptrdiff_t a = 1; a < r; a++)
        for (ptrdiff_t b = 0; b < a; b++)
            H[b * r + a] = H[a * r + b];
}

/* H = Σ_e weight_e z zᵀ over the rows z of Z. */
#define MAHALO_CACHED 2048
MAHALO_VECTORIZED
static void mahalo_gram(const double *Z, const double *weight, double *H, ptrdiff_t n, ptrdiff_t r)
{
    const ptrdiff_t batch = 1 + MAHALO_CACHED / r; /* rows that stay in the cache while their tiles are computed */
    for (ptrdiff_t k = 0; k < r * r; k++)
        H[k] = 0.0;
    for (ptrdiff_t e = 0; e < n; e += batch)
        mahalo_add_gram(Z + e * r, weight + e, H, n - e < batch ? n - e : batch, r);
    mahalo_mirror(H, r);
}

/* H = Σ_e weight_e z zᵀ over edges, z = Y[i] − Y[j], or over their squares z ∘ z; H is of order `padded`, a multiple of 8, and
   `rows` room for MAHALO_BATCH rows of that length with zeros beyond r. Edges of weight 0 are skipped. */
#define MAHALO_BATCH 64
MAHALO_VECTORIZED
static void mahalo_edge_gram(const double *MAHALO_RESTRICT Y, const ptrdiff_t *tail, const ptrdiff_t *head,
                             const double *weight, double *MAHALO_RESTRICT H, double *MAHALO_RESTRICT rows,
                             ptrdiff_t n_edges, ptrdiff_t r, ptrdiff_t padded, int squared)
{
    double w[MAHALO_BATCH];
    int filled = 0;
    for (ptrdiff_t k = 0; k < padded * padded; k++)
        H[k] = 0.0;
    for (ptrdiff_t e = 0; e < n_edges; e++) {
        if (weight[e] != 0.0) {
            const double *yi = Y + tail[e] * r, *yj = Y + head[e] * r;
            double *z = rows + filled * padded;
            for (ptrdiff_t k = 0; k < r; k++)
                z[k] = yi[k] - yj[k];
            if (squared)
                for (ptrdiff_t k = 0; k < r; k++)
                    z[k] *= z[k];
            w[filled++] = weight[e];
        }
        if (filled == MAHALO_BATCH || e + 1 == n_edges) {
            mahalo_add_gram(rows, w, H, filled, padded);
            filled = 0;
        }
    }
    mahalo_mirror(H, padded);
}

/* The upper triangle of H += Σ_i weight_i z zᵀ over MAHALO_ROWS rows z of Z; below the diagonal H is undefined. */
MAHALO_VECTORIZED
static void mahalo_add_upper(double *H, const double *Z, const double *weight, ptrdiff_t r)
{
    for (ptrdiff_t c = 0; c < r; c += 8)
        for (ptrdiff_t a = 0; a < c + 8; a += MAHALO_ROWS)
            mahalo_gram_tile(Z, weight, H, MAHALO_ROWS, r, a, c);
}

/* `width` columns of F ← F + Σ_i beta_i x_i x_iᵀ and of Y = Z F over two rows of X and of Z: as in mahalo_columns, with
   two updates and two products for one pass over F, which is what 16 registers hold. */
MAHALO_INLINED
void mahalo_columns_of_two(double *MAHALO_RESTRICT F, const double *MAHALO_RESTRICT X,
                           const double *MAHALO_RESTRICT beta, const double *MAHALO_RESTRICT Z,
                           double *MAHALO_RESTRICT Y, ptrdiff_t r, ptrdiff_t first, const int width)
{
    double sum[2][16], scaled[2][16];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < width; k++) {
            sum[i][k] = 0.0;
            scaled[i][k] = beta[i] * X[i * r + first + k];
        }
    for (ptrdiff_t a = 0; a < r; a++) {
        double *row = F + a * r + first;
        double x0 = X[a], x1 = X[r + a], z0 = Z[a], z1 = Z[r + a];
        for (int k = 0; k < width; k++) {
            double f = row[k] + x0 * scaled[0][k] + x1 * scaled[1][k];
            row[k] = f;
            sum[0][k] += z0 * f;
            sum[1][k] += z1 * f;
        }
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < width; k++)
            Y[i * r + first + k] = sum[i][k];
}

/* F ← F + Σ_i beta_i x_i x_iᵀ, then Y = Z F, over two rows of X and of Z; F is symmetric, its order a multiple of 8. */
MAHALO_VECTORIZED
static void mahalo_update_multiply_two(double *F, const double *X, const double *beta, const double *Z, double *Y,
                                       ptrdiff_t r)
{
    ptrdiff_t c = 0;
    for (; c + 16 <= r; c += 16)
        mahalo_columns_of_two(F, X, beta, Z, Y, r, c, 16);
    if (c < r)
        mahalo_columns_of_two(F, X, beta, Z, Y, r, c, 8);
}

MAHALO_VECTORIZED
static double mahalo_dot(const double *x, const double *y, ptrdiff_t n)
{
    double total = 0.0;
    for (ptrdiff_t k = 0; k < n; k++)
        total += x[k] * y[k];
    return total;
}

/* y ← a x + b y */
MAHALO_VECTORIZED
static void mahalo_combine(double a, const double *MAHALO_RESTRICT x, double b, double *MAHALO_RESTRICT y, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++)
        y[k] = a * x[k] + b * y[k];
}

/* out = x ∘ y + a z */
MAHALO_VECTORIZED
static void mahalo_multiply(const double *x, const double *y, double a, const double *z, double *out, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++)
        out[k] = x[k] * y[k] + a * z[k];
}

/* out[j, t] = Σ_b min(value of bin b in row j, table[b, t]) for the MAHALO_LANES columns t of the table.
   One entry of a sparse row meets one cache line of the table: that many intersections at the price of one. */
#define MAHALO_LANES 16
MAHALO_VECTORIZED
static void mahalo_intersections(const float *MAHALO_RESTRICT table, const int *start, const int *bin,
                                 const float *value, double *MAHALO_RESTRICT out, ptrdiff_t n_rows)
{
    for (ptrdiff_t j = 0; j < n_rows; j++) {
        double sum[MAHALO_LANES] = {0.0};
        for (ptrdiff_t q = start[j]; q < start[j + 1]; q++) {
            const float *line = table + (ptrdiff_t)bin[q] * MAHALO_LANES;
            float v = value[q];
            for (int t = 0; t < MAHALO_LANES; t++)
                sum[t] += line[t] < v ? line[t] : v;
        }
        for (int t = 0; t < MAHALO_LANES; t++)
            out[j * MAHALO_LANES + t] = sum[t];
    }
}

/* G ← a_i + b_j − 2 G, clipped at 0, and its square root if `root`: one function for each precision. */
#define MAHALO_FINISH(name, real, root_of)                                                              \
    MAHALO_VECTORIZED                                                                                   \
    static void name(real *MAHALO_RESTRICT G, const real *MAHALO_RESTRICT a, const real *MAHALO_RESTRICT b,    \
                     ptrdiff_t n, ptrdiff_t m, int root)                                                \
    {                                                                                                   \
        for (ptrdiff_t i = 0; i < n; i++) {                                                             \
            real *row = G + i * m;                                                                      \
            real ai = a[i];                                                                             \
            for (ptrdiff_t j = 0; j < m; j++) {                                                         \
                real d = ai + b[j] - 2 * row[j];                                                        \
                row[j] = d < 0 ? 0 : d;                                                                 \
            }                                                                                           \
            if (root)                                                                                   \
                for (ptrdiff_t j = 0; j < m; j++)                                                       \
                    row[j] = root_of(row[j]);                                                           \
        }                                                                                               \
    }

MAHALO_FINISH(mahalo_finish_d, double, sqrt)
MAHALO_FINISH(mahalo_finish_s, float, sqrtf)

#endif
