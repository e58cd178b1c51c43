// A curve of any length in a fixed amount of memory.
//
// Points arrive in order of x. They are kept in buckets of equally many points; when all buckets
// are full, neighbours merge and the width doubles. Each bucket keeps its lowest and highest point,
// so a drawn curve shows every spike of the full one, and its mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace obelisk {

struct Point {
  double x = 0, y = 0;  // y is NaN where the curve has a gap
};

class Series {
 public:
  struct Bucket {
    int64_t size = 0;    // points that arrived
    int64_t finite = 0;  // of them, with a finite y
    double first_x = 0, last_x = 0;
    Point low, high;  // valid when finite > 0
    double sum = 0;   // of the finite y
  };

  // Twice as many points are drawn at most. Memory is taken here, never in add.
  explicit Series(size_t max_buckets = 1000);

  void add(double x, double y);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int64_t size() const { return size_; }  // points that arrived
  int64_t not_finite() const { return size_ - finite_; }
  double last() const { return last_; }     // y of the newest point, NaN before the first
  Point lowest() const { return lowest_; }  // of the finite points; y is NaN without one
  double mean() const;                      // of the finite points; NaN without one

 private:
  void merge_pairs();

  size_t max_buckets_;
  int64_t width_ = 1;  // points a bucket takes
  std::vector<Bucket> buckets_;
  int64_t size_ = 0, finite_ = 0;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  double sum_ = 0;
  Point lowest_{0, std::numeric_limits<double>::quiet_NaN()};
};

// The lowest and the highest point of each bucket, in order of x; a gap where no value is finite.
std::vector<Point> outline(const Series& series);

// The buckets' means m_j, weighted by their counts n_j, under a two-sided exponential average: no
// lag behind the curve.
//   s_i = sum_j d^|i-j| n_j m_j / sum_j d^|i-j| n_j,   d = 1 - 1/window, window in buckets
// A window of 1 gives the means themselves. A gap stays one.
std::vector<Point> smooth(const Series& series, double window);

}  // namespace obelisk
