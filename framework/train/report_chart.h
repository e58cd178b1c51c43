// Charts of the report: inline SVG, styled by the page, readable without any script.
//
// Class names that the page styles: chart, grid, axis, tick, bad, raw, line1, line2, dot1, dot2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/train/report_series.h"

namespace obelisk {

// Round numbers that cover [low, high] at distances of 1, 2 or 5 times a power of ten; about
// `count` of them and at least two, the first at or above low, the last at or below high. None when
// high is not above low.
std::vector<double> nice_ticks(double low, double high, int count);

// The short form of a tick: 0.002, 1.5, 250, 20k.
std::string tick_text(double value);

struct Curve {
  std::string name;   // in the legend and the read-out; empty: in neither
  std::string style;  // "raw", "line1" or "line2"
  std::vector<Point> points;
  bool dots = false;  // mark the points
};

struct Chart {
  std::string title;
  std::string unit;  // of y
  std::vector<Curve> curves;
  std::vector<double> bad;        // x of values that are not finite: marked on the x axis
  int64_t not_finite = 0;         // how many those are, said below the chart
  bool from_zero = false;         // the y axis starts at zero
  bool clip_spikes = false;       // the y axis may leave out rare extremes; how many is said below
  int width = 328, height = 220;  // pixels
};

// Appends a <figure>. With no finite point it says so in place of the curves.
void append_chart(std::string& out, const Chart& chart);

}  // namespace obelisk
