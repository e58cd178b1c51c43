#include "framework/train/report_series.h"

#include <algorithm>
#include <cmath>

namespace obelisk {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

void absorb(Series::Bucket& into, const Series::Bucket& next) {
  if (into.size == 0) into.first_x = next.first_x;
  into.last_x = next.last_x;
  if (next.finite > 0) {
    if (into.finite == 0 || next.low.y < into.low.y) into.low = next.low;
    if (into.finite == 0 || next.high.y > into.high.y) into.high = next.high;
  }
  into.size += next.size;
  into.finite += next.finite;
  into.sum += next.sum;
}

}  // namespace

Series::Series(size_t max_buckets) : max_buckets_(std::max<size_t>(2, max_buckets / 2 * 2)) {
  buckets_.reserve(max_buckets_);
}

void Series::add(double x, double y) {
  if (buckets_.empty() || buckets_.back().size == width_) {
    if (buckets_.size() == max_buckets_) merge_pairs();
    buckets_.emplace_back();
  }
  const bool finite = std::isfinite(y);
  absorb(buckets_.back(), {1, finite ? 1 : 0, x, x, {x, y}, {x, y}, finite ? y : 0});
  ++size_;
  last_ = y;
  if (!finite) return;
  ++finite_;
  sum_ += y;
  if (!(lowest_.y <= y)) lowest_ = {x, y};
}

void Series::merge_pairs() {
  const size_t half = buckets_.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    Bucket merged;
    absorb(merged, buckets_[2 * i]);
    absorb(merged, buckets_[2 * i + 1]);
    buckets_[i] = merged;
  }
  buckets_.resize(half);
  width_ *= 2;
}

double Series::mean() const { return finite_ == 0 ? kGap : sum_ / static_cast<double>(finite_); }

std::vector<Point> outline(const Series& series) {
  std::vector<Point> points;
  points.reserve(2 * series.buckets().size());
  for (const Series::Bucket& bucket : series.buckets()) {
    if (bucket.finite == 0) {
      points.push_back({bucket.first_x, kGap});
      continue;
    }
    const bool low_first = bucket.low.x <= bucket.high.x;
    points.push_back(low_first ? bucket.low : bucket.high);
    if (bucket.low.x != bucket.high.x) points.push_back(low_first ? bucket.high : bucket.low);
  }
  return points;
}

std::vector<Point> smooth(const Series& series, double window) {
  const double decay = 1 - 1 / std::max(1.0, window);
  const std::vector<Series::Bucket>& buckets = series.buckets();
  std::vector<Point> points(buckets.size());
  std::vector<double> weights(buckets.size());
  // Two passes: what comes before and the bucket itself, then what comes after.
  double sum = 0, weight = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    sum = decay * sum + buckets[i].sum;
    weight = decay * weight + static_cast<double>(buckets[i].finite);
    points[i] = {(buckets[i].first_x + buckets[i].last_x) / 2, sum};
    weights[i] = weight;
  }
  sum = weight = 0;
  for (size_t i = buckets.size(); i-- > 0;) {
    points[i].y = buckets[i].finite == 0 ? kGap : (points[i].y + sum) / (weights[i] + weight);
    sum = decay * (sum + buckets[i].sum);
    weight = decay * (weight + static_cast<double>(buckets[i].finite));
  }
  return points;
}

}  // namespace obelisk
