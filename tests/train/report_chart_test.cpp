#include "framework/train/report_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace obelisk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(NiceTicks, OneTwoFive) {
  EXPECT_THAT(nice_ticks(0, 1, 5), ElementsAre(0, 0.2, 0.4, testing::DoubleEq(0.6), 0.8, 1));
  EXPECT_THAT(nice_ticks(0, 2000, 4), ElementsAre(0, 500, 1000, 1500, 2000));
  EXPECT_THAT(nice_ticks(1.4, 4.2, 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(nice_ticks(-1, 1, 2), ElementsAre(-1, 0, 1));
  EXPECT_EQ(nice_ticks(0, 3e-4, 3).size(), 4u);
}

TEST(NiceTicks, StayInsideAndFew) {
  for (double low = -7.3; low < 7; low += 0.77) {
    for (double extent = 1e-6; extent < 1e9; extent *= 3.7) {
      for (int count = 2; count < 9; ++count) {
        const auto ticks = nice_ticks(low, low + extent, count);
        ASSERT_LE(ticks.size(), static_cast<size_t>(count) + 2);
        ASSERT_GE(ticks.size(), 2u) << low << " " << extent << " " << count;
        for (const double tick : ticks) {
          ASSERT_GE(tick, low - 1e-8 * extent);
          ASSERT_LE(tick, low + extent * (1 + 1e-8));
        }
      }
    }
  }
}

TEST(NiceTicks, NothingToDivide) {
  EXPECT_TRUE(nice_ticks(1, 1, 5).empty());
  EXPECT_TRUE(nice_ticks(2, 1, 5).empty());
  EXPECT_TRUE(nice_ticks(kNan, 1, 5).empty());
  EXPECT_TRUE(nice_ticks(-1.7e308, 1.7e308, 5).empty());
}

TEST(TickText, Short) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.30000000000000004), "0.3");
  EXPECT_EQ(tick_text(2000), "2000");
  EXPECT_EQ(tick_text(20000), "20k");
  EXPECT_EQ(tick_text(1e-5), "1e-05");
  EXPECT_EQ(tick_text(1e20), "1e+20");
}

Chart chart_of(std::vector<Point> points) {
  Chart chart;
  chart.title = "Loss";
  chart.unit = "nats";
  chart.curves.push_back({"training", "line1", std::move(points)});
  return chart;
}

std::string drawn(const Chart& chart) {
  std::string out;
  append_chart(out, chart);
  return out;
}

// What the read-out's script is given.
std::string data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\">";
  const size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(Chart, DrawsEveryPointInsideThePlot) {
  const std::string html = drawn(chart_of({{1, 4}, {2, 3}, {3, 2}}));
  // The plot spans 52 to 314 across and 10 to 190 down; 4% of the range stay free above and below.
  EXPECT_THAT(html, HasSubstr("d=\"M52.0 16.7L183.0 100.0L314.0 183.3\""));
  EXPECT_THAT(html, HasSubstr(">Loss<"));
  EXPECT_THAT(html, HasSubstr(">nats<"));
  EXPECT_EQ(data_of(html), R"({"x":[1,3],"y":[1.92,4.08],"box":[52,10,262,180],"curves":[)"
                           R"({"name":"training","style":"line1","points":[[1,4],[2,3],[3,2]]}]})");
}

TEST(Chart, GapBreaksTheLineAndALonePointIsADot) {
  Chart chart = chart_of({{1, 4}, {2, kNan}, {3, 2}, {4, 1}});
  chart.bad = {2};
  chart.not_finite = 1;
  const std::string html = drawn(chart);
  EXPECT_THAT(html, testing::ContainsRegex("d=\"M[0-9. ]+M[0-9. ]+L[0-9. ]+\""));
  EXPECT_THAT(html, HasSubstr("<circle class=\"dot line1\""));
  EXPECT_THAT(html, HasSubstr("class=\"bad\""));
  EXPECT_THAT(html, HasSubstr("1 value is NaN or Inf, marked on the axis."));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(data_of(html), HasSubstr("\"points\":[[1,4],[3,2],[4,1]]"));
}

TEST(Chart, OnePoint) {
  const std::string html = drawn(chart_of({{1, 4.1}}));
  EXPECT_THAT(html, HasSubstr("<circle"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

TEST(Chart, NoFinitePoint) {
  for (const Chart& chart : {chart_of({}), chart_of({{1, kNan}, {2, kNan}})}) {
    const std::string html = drawn(chart);
    EXPECT_THAT(html, HasSubstr("No finite value to draw."));
    EXPECT_THAT(html, Not(HasSubstr("<svg")));
  }
}

TEST(Chart, ExtremeValuesStayNumbers) {
  for (const double value : {1.7e308, -1.7e308, 5e-324, 0.0}) {
    const std::string html = drawn(chart_of({{1, value}, {2, -value}, {3, 1}}));
    EXPECT_THAT(html, Not(HasSubstr("nan"))) << value;
    EXPECT_THAT(html, Not(HasSubstr("inf"))) << value;
  }
}

TEST(Chart, RareSpikesMayBeCut) {
  std::vector<Point> points;
  for (int i = 0; i < 400; ++i) points.push_back({static_cast<double>(i), 1 + 0.01 * (i % 10)});
  points[200].y = 1000;
  Chart chart = chart_of(points);
  EXPECT_THAT(drawn(chart), Not(HasSubstr("Spikes")));
  chart.clip_spikes = true;
  const std::string html = drawn(chart);
  EXPECT_THAT(html, HasSubstr("Spikes beyond the axis are cut; the highest is 1000."));
  EXPECT_THAT(data_of(html), HasSubstr("\"y\":[0.9946,1.1404]"))
      << "99% of the values and a margin";
}

TEST(Chart, LegendFromTwoNamesOn) {
  Chart chart = chart_of({{1, 4}, {2, 3}});
  EXPECT_THAT(drawn(chart), Not(HasSubstr("legend")));
  chart.curves.push_back({"", "raw", {{1, 4}}});
  EXPECT_THAT(drawn(chart), Not(HasSubstr("legend")));
  chart.curves.push_back({"a<b", "line2", {{1, 4}}, true});
  const std::string html = drawn(chart);
  EXPECT_THAT(html, HasSubstr("legend"));
  EXPECT_THAT(html, HasSubstr("a&lt;b"));
  EXPECT_THAT(data_of(html), HasSubstr(R"("name":"a\u003cb","style":"line2")"));
}

}  // namespace
}  // namespace obelisk
