#include "framework/train/report_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "framework/train/report_text.h"

namespace obelisk {
namespace {

constexpr double kLeft = 52, kRight = 14, kTop = 10, kBottom = 30;  // px round the plot
constexpr double kHuge = 1e300;  // the extent of an axis must be a number too
constexpr size_t kMaxTicks = 100;
constexpr double kTickGapX = 65, kTickGapY = 44;  // px between ticks, about

struct Range {
  double low = 0, high = 1;
};

// Pixels of a point: y grows downwards.
struct Frame {
  Range x, y;
  double width, height;

  double px(double value) const {
    return kLeft + (value - x.low) / (x.high - x.low) * plot_width();
  }
  double py(double value) const {
    // Kept near the plot: a clipped spike of 1e300 must not print 300 digits.
    const double share = std::clamp((value - y.low) / (y.high - y.low), -1.0, 2.0);
    return kTop + (1 - share) * plot_height();
  }
  double plot_width() const { return width - kLeft - kRight; }
  double plot_height() const { return height - kTop - kBottom; }
};

// One value has no extent: room is made on both sides.
Range widen(Range range) {
  if (range.high > range.low) return range;
  const double room = range.low == 0 ? 1 : std::abs(range.low) * 0.1;
  return {range.low - room, range.high + room};
}

std::vector<double> finite_values(const Chart& chart) {
  std::vector<double> values;
  for (const Curve& curve : chart.curves)
    for (const Point& point : curve.points)
      if (std::isfinite(point.y)) values.push_back(std::clamp(point.y, -kHuge, kHuge));
  std::sort(values.begin(), values.end());
  return values;
}

Range x_range(const Chart& chart) {
  Range range{INFINITY, -INFINITY};
  for (const Curve& curve : chart.curves) {
    for (const Point& point : curve.points) {
      range.low = std::min(range.low, point.x);
      range.high = std::max(range.high, point.x);
    }
  }
  return range.low > range.high ? Range{} : range;
}

Range y_range(const Chart& chart, const std::vector<double>& sorted) {
  Range range{sorted.front(), sorted.back()};
  if (chart.clip_spikes) {
    // A tail that stretches the axis threefold and more hides what the chart is for.
    const double usual = sorted[(sorted.size() - 1) * 99 / 100];
    const double spread = usual - range.low;
    if (spread > 0 && range.high - range.low > 3 * spread) range.high = usual + 0.5 * spread;
  }
  if (chart.from_zero) range.low = std::min(0.0, range.low);
  range = widen(range);
  const double room = 0.04 * (range.high - range.low);
  if (!chart.from_zero || range.low < 0) range.low -= room;
  range.high += room;
  return range;
}

void append_axes(std::string& out, const Frame& frame) {
  const auto to = std::back_inserter(out);
  const int across = std::max(2, static_cast<int>(frame.plot_width() / kTickGapX));
  const int up = std::max(2, static_cast<int>(frame.plot_height() / kTickGapY));
  const double bottom = frame.height - kBottom;
  for (const double value : nice_ticks(frame.y.low, frame.y.high, up)) {
    const double y = frame.py(value);
    fmt::format_to(to, R"(<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
                   kLeft, frame.width - kRight, y, y);
    fmt::format_to(to, R"(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
                   kLeft - 8, y + 4, tick_text(value));
  }
  for (const double value : nice_ticks(frame.x.low, frame.x.high, across)) {
    if (value != std::floor(value)) continue;  // steps are whole
    const double x = frame.px(value);
    fmt::format_to(to, R"(<line class="axis" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)", x,
                   x, bottom, bottom + 4);
    fmt::format_to(to, R"(<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                   x, bottom + 18, tick_text(value));
  }
  fmt::format_to(to, R"(<line class="axis" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
                 kLeft, frame.width - kRight, bottom, bottom);
}

void append_curve(std::string& out, const Frame& frame, const Curve& curve) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"(<path class="{}" d=")", curve.style);
  bool pen_down = false;
  for (const Point& point : curve.points) {
    if (std::isfinite(point.y))
      fmt::format_to(to, "{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', frame.px(point.x),
                     frame.py(point.y));
    pen_down = std::isfinite(point.y);
  }
  out += "\"/>";
  // A lone point between gaps draws no line.
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const Point& point = curve.points[i];
    if (!std::isfinite(point.y)) continue;
    const bool alone = (i == 0 || !std::isfinite(curve.points[i - 1].y)) &&
                       (i + 1 == curve.points.size() || !std::isfinite(curve.points[i + 1].y));
    if (!curve.dots && !alone) continue;
    fmt::format_to(to, R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="{}"/>)", curve.style,
                   frame.px(point.x), frame.py(point.y),
                   curve.points.size() > 60 && !alone ? 1.5 : 3.5);
  }
}

// What the read-out needs, for the page's script: the plot's scale and the named curves.
void append_data(std::string& out, const Frame& frame, const Chart& chart) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"({{"x":[{:.9g},{:.9g}],"y":[{:.9g},{:.9g}],"box":[{},{},{},{}],"curves":[)",
                 frame.x.low, frame.x.high, frame.y.low, frame.y.high, kLeft, kTop,
                 frame.plot_width(), frame.plot_height());
  for (const Curve& curve : chart.curves) {
    if (curve.name.empty()) continue;
    if (out.back() != '[') out += ',';
    std::string name;
    append_json_string(name, curve.name);
    for (size_t i = name.find('<'); i != std::string::npos; i = name.find('<', i))
      name.replace(i, 1, "\\u003c");  // "</script>" would end the element
    fmt::format_to(to, R"({{"name":{},"style":"{}","points":[)", name, curve.style);
    for (const Point& point : curve.points) {
      if (!std::isfinite(point.y)) continue;
      fmt::format_to(to, "{}[{:.9g},{:.5g}]", out.back() == '[' ? "" : ",", point.x, point.y);
    }
    out += "]}";
  }
  out += "]}";
}

void append_legend(std::string& out, const Chart& chart) {
  const auto named = std::count_if(chart.curves.begin(), chart.curves.end(),
                                   [](const Curve& curve) { return !curve.name.empty(); });
  if (named < 2) return;
  out += "<span class=\"legend\">";
  for (const Curve& curve : chart.curves) {
    if (curve.name.empty()) continue;
    fmt::format_to(std::back_inserter(out), R"(<span><i class="key {}"></i>{}</span>)", curve.style,
                   html_escape(curve.name));
  }
  out += "</span>";
}

void append_notes(std::string& out, const Chart& chart, const Frame& frame,
                  const std::vector<double>& sorted) {
  const auto beyond = sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), frame.y.high);
  const auto to = std::back_inserter(out);
  if (beyond > 0)
    fmt::format_to(to, "<p class=\"note\">Spikes beyond the axis are cut; the highest is {}.</p>",
                   tick_text(sorted.back()));
  if (chart.not_finite > 0)
    fmt::format_to(to, "<p class=\"note alert\">{} value{} NaN or Inf, marked on the axis.</p>",
                   chart.not_finite, chart.not_finite == 1 ? " is" : "s are");
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!(high > low) || count < 1 || !std::isfinite(high - low)) return ticks;
  // A range may lie between two round numbers: then finer ones are taken.
  for (; ticks.size() < 2 && count < 1000; count *= 2) {
    const double raw = (high - low) / count;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double rest = raw / power;
    const double step = power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
    // Counted in whole steps, so that rounding does not add up; 1e-9 keeps a tick at the very end.
    const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
    ticks.clear();
    for (double i = first; i <= last && ticks.size() < kMaxTicks; ++i) ticks.push_back(i * step);
  }
  return ticks;
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  if (std::abs(value) >= 10000 && std::abs(value) < 1e15) return count_text(value);
  return fmt::format("{:.4g}", value);
}

void append_chart(std::string& out, const Chart& chart) {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, R"(<figure class="chart"><figcaption><b>{}</b> <span class="unit">{}</span>)",
                 html_escape(chart.title), html_escape(chart.unit));
  append_legend(out, chart);
  out += "</figcaption>";
  const std::vector<double> sorted = finite_values(chart);
  if (sorted.empty()) {
    out += "<p class=\"empty\">No finite value to draw.</p></figure>\n";
    return;
  }
  const Frame frame{widen(x_range(chart)), y_range(chart, sorted), static_cast<double>(chart.width),
                    static_cast<double>(chart.height)};
  fmt::format_to(to, R"(<div class="plot"><svg viewBox="0 0 {} {}" role="img" aria-label="{}">)",
                 chart.width, chart.height, html_escape(chart.title));
  append_axes(out, frame);
  fmt::format_to(to, R"(<svg x="{}" y="{}" width="{:.1f}" height="{:.1f}" )", kLeft - 5, kTop - 5,
                 frame.plot_width() + 10, frame.plot_height() + 6);
  fmt::format_to(to, R"(viewBox="{} {} {:.1f} {:.1f}">)", kLeft - 5, kTop - 5,
                 frame.plot_width() + 10, frame.plot_height() + 6);  // clips what lies beyond
  for (const Curve& curve : chart.curves) append_curve(out, frame, curve);
  out += "</svg>";
  for (const double x : chart.bad)
    fmt::format_to(to, R"(<path class="bad" d="M{:.1f} {:.1f}l-4 8h8z"/>)", frame.px(x),
                   frame.height - kBottom - 8);
  out += "<g class=\"hover\"></g></svg><div class=\"readout\"></div>";
  out += "<script type=\"application/json\">";
  append_data(out, frame, chart);
  out += "</script></div>";
  append_notes(out, chart, frame, sorted);
  out += "</figure>\n";
}

}  // namespace obelisk
