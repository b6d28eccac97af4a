// moments: count, mean and M2 (sum of squared deviations) of a set of numbers, and the exact merge
// of two disjoint sets. Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.

struct Moments {
    count: f32,
    mean: f32,
    m2: f32,
}

fn merge_moments(a: Moments, b: Moments) -> Moments {
    let count = a.count + b.count;
    if (count == 0.0) {
        return Moments(0.0, 0.0, 0.0);
    }
    let delta = b.mean - a.mean;
    let share = b.count / count;
    return Moments(count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share);
}
