#include "framework/train/report_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/train/allocation_count.h"

namespace obelisk {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Series, FewPointsAreKeptAsTheyAre) {
  Series series(10);
  for (int i = 0; i < 10; ++i) series.add(i + 1, i * i);
  const auto points = outline(series);
  ASSERT_EQ(points.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(points[static_cast<size_t>(i)].x, i + 1);
    EXPECT_EQ(points[static_cast<size_t>(i)].y, i * i);
  }
  EXPECT_EQ(series.last(), 81);
}

TEST(Series, EmptyHasNoPoints) {
  const Series series;
  EXPECT_TRUE(outline(series).empty());
  EXPECT_TRUE(smooth(series, 5).empty());
  EXPECT_EQ(series.size(), 0);
  EXPECT_TRUE(std::isnan(series.last()));
  EXPECT_TRUE(std::isnan(series.lowest().y));
  EXPECT_TRUE(std::isnan(series.mean()));
}

TEST(Series, AMillionPointsKeepEverySpikeInTwoThousand) {
  Series series;
  double sum = 0;
  for (int i = 1; i <= 1000000; ++i) {
    double y = std::sin(i * 0.001);
    if (i == 123457) y = 50;
    if (i == 765433) y = -40;
    sum += y;
    series.add(i, y);
  }
  EXPECT_EQ(series.size(), 1000000);
  const auto points = outline(series);
  EXPECT_LE(points.size(), 2000u);
  EXPECT_GT(points.size(), 900u);
  Point high = points[0], low = points[0];
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(points[i - 1].x, points[i].x);
    }
    if (points[i].y > high.y) high = points[i];
    if (points[i].y < low.y) low = points[i];
  }
  EXPECT_EQ(high.x, 123457);
  EXPECT_EQ(high.y, 50);
  EXPECT_EQ(low.x, 765433);
  EXPECT_EQ(low.y, -40);
  EXPECT_EQ(series.lowest().x, 765433);
  EXPECT_NEAR(series.mean(), sum / 1e6, 1e-12);
}

TEST(Series, AddNeverAllocates) {
  Series series;
  const int64_t before = allocation_count();
  for (int i = 0; i < 50000; ++i) series.add(i, i % 11 == 0 ? kNan : i);
  EXPECT_EQ(allocation_count() - before, 0);
}

TEST(Series, GapsWhereNothingIsFinite) {
  Series series(100);
  series.add(1, 2);
  series.add(2, kNan);
  series.add(3, std::numeric_limits<double>::infinity());
  series.add(4, 1);
  EXPECT_EQ(series.not_finite(), 2);
  const auto points = outline(series);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_TRUE(std::isnan(points[1].y));
  EXPECT_TRUE(std::isnan(points[2].y));
  EXPECT_EQ(points[3].y, 1);
  const auto smoothed = smooth(series, 10);
  EXPECT_TRUE(std::isnan(smoothed[1].y));
  EXPECT_FALSE(std::isnan(smoothed[3].y)) << "a bad value must not poison what follows";
}

TEST(Series, MergingABadPointKeepsTheGoodOne) {
  Series series(2);
  series.add(1, kNan);
  series.add(2, 5);
  series.add(3, 7);
  ASSERT_EQ(series.buckets().size(), 2u);
  EXPECT_EQ(series.buckets()[0].size, 2);
  EXPECT_EQ(series.buckets()[0].finite, 1);
  EXPECT_EQ(series.buckets()[0].low.y, 5);
  EXPECT_EQ(series.buckets()[0].high.y, 5);
  EXPECT_EQ(series.buckets()[0].first_x, 1);
  EXPECT_EQ(series.buckets()[0].last_x, 2);
}

TEST(Smooth, WindowOfOneGivesTheMeans) {
  Series series(10);
  for (int i = 0; i < 5; ++i) series.add(i, 3 * i);
  const auto points = smooth(series, 1);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(points[i].y, 3.0 * static_cast<double>(i));
}

TEST(Smooth, FollowsTheFormula) {
  Series series(10);
  const double y[] = {4, 8, 2};
  for (int i = 0; i < 3; ++i) series.add(i, y[i]);
  const auto points = smooth(series, 2);  // d = 1/2
  EXPECT_DOUBLE_EQ(points[0].y, (4 + 0.5 * 8 + 0.25 * 2) / 1.75);
  EXPECT_DOUBLE_EQ(points[1].y, (0.5 * 4 + 8 + 0.5 * 2) / 2);
  EXPECT_DOUBLE_EQ(points[2].y, (0.25 * 4 + 0.5 * 8 + 2) / 1.75);
}

}  // namespace
}  // namespace obelisk
