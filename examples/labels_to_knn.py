"""From labels: a metric learner in front of a nearest-neighbour classifier, in one pipeline."""

from sklearn.datasets import load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearner

X, y = load_wine(return_X_y=True)
halves = RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=0)

plain = make_pipeline(StandardScaler(), KNeighborsClassifier(10))
learned = make_pipeline(StandardScaler(), MetricLearner(), KNeighborsClassifier(10))

for name, model in (("Euclidean", plain), ("learned", learned)):
    accuracy = cross_val_score(model, X, y, cv=halves)
    print(f"{name:10s} 10-NN error {100 * (1 - accuracy.mean()):.1f} %")

learner = learned.fit(X, y)[1]
certificate = learner.certificate_
print(f"\n{learner.constraints_}, {learner.n_iter_} steps, converged: {certificate.converged}")
print(f"objective {certificate.primal:.4f}; no metric has less than {certificate.dual:.4f}")
