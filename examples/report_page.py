"""
One page on what was learned
============================

To open in a browser or to send to somebody; what is on it is said in the page on reports.
"""

from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearnerCV


def wine_report(path: Path) -> Path:
    """What is learned about wine, with the names of classes and columns as people know them."""
    data = load_wine(as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
    y = data.target_names[data.target]
    learner = MetricLearnerCV(random_state=0).fit(X, y)
    return learner.report(X, y, path, ids=[f"bottle {i}" for i in range(len(X))])


# sphinx_gallery_thumbnail_path = "images/report.png"
if __name__ == "__main__":
    page = wine_report(Path("report.html"))
    print(f"{page}: {page.stat().st_size / 1024:.0f} KB, open it in any browser")
