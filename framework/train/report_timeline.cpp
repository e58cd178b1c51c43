#include "framework/train/report_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "framework/train/report_text.h"

namespace obelisk {
namespace {

constexpr size_t kNamedOps = 5;  // colours c0 to c4; all others share c5

struct OpTotal {
  std::string name;
  double microseconds = 0;
};

// In order of time, without those inside another.
std::vector<const TraceRecord*> outermost(std::span<const TraceRecord> spans,
                                          std::string_view category) {
  std::vector<const TraceRecord*> sorted, kept;
  for (const TraceRecord& span : spans)
    if (span.category == category) sorted.push_back(&span);
  std::stable_sort(sorted.begin(), sorted.end(), [](const TraceRecord* a, const TraceRecord* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->duration > b->duration;
  });
  double end = -1;
  for (const TraceRecord* span : sorted) {
    if (span->begin < end) continue;
    kept.push_back(span);
    end = span->begin + span->duration;
  }
  return kept;
}

// The longest first.
std::vector<OpTotal> totals(const std::vector<const TraceRecord*>& ops) {
  std::vector<OpTotal> result;
  for (const TraceRecord* op : ops) {
    auto it = std::find_if(result.begin(), result.end(),
                           [&](const OpTotal& total) { return total.name == op->name; });
    if (it == result.end()) it = result.insert(result.end(), {op->name, 0.0});
    it->microseconds += op->duration;
  }
  std::stable_sort(result.begin(), result.end(), [](const OpTotal& a, const OpTotal& b) {
    return a.microseconds > b.microseconds;
  });
  return result;
}

size_t colour_of(const std::string& name, const std::vector<OpTotal>& ranking) {
  for (size_t i = 0; i < std::min(kNamedOps, ranking.size()); ++i)
    if (ranking[i].name == name) return i;
  return kNamedOps;
}

void append_bar(std::string& out, const TraceRecord& span, const TraceRecord& step, size_t colour,
                std::string_view label) {
  const std::string where = span.path.empty() ? "" : " in " + html_escape(span.path);
  fmt::format_to(
      std::back_inserter(out),
      R"(<i class="c{}" style="left:{:.3f}%;width:{:.3f}%" title="{}{}: {:.3f} ms">{}</i>)", colour,
      100 * (span.begin - step.begin) / step.duration, 100 * span.duration / step.duration,
      html_escape(span.name), where, span.duration / 1e3, html_escape(label));
}

void append_legend(std::string& out, const std::vector<OpTotal>& ranking, double step_time) {
  double others = 0;
  out += "<div class=\"shares\">";
  const auto entry = [&](size_t colour, std::string_view name, double time) {
    fmt::format_to(std::back_inserter(out),
                   R"(<span><i class="c{}"></i>{} {:.1f}% <span>{:.3g} ms</span></span>)", colour,
                   html_escape(name), 100 * time / step_time, time / 1e3);
  };
  for (size_t i = 0; i < ranking.size(); ++i) {
    if (i < kNamedOps) {
      entry(i, ranking[i].name, ranking[i].microseconds);
    } else {
      others += ranking[i].microseconds;
    }
  }
  if (others > 0) entry(kNamedOps, "other ops", others);
  out += "</div>";
}

}  // namespace

void append_timeline(std::string& out, std::span<const TraceRecord> spans) {
  const auto step = std::find_if(spans.begin(), spans.end(),
                                 [](const TraceRecord& span) { return span.category == "step"; });
  if (step == spans.end() || !(step->duration > 0)) return;
  const std::vector<const TraceRecord*> ops = outermost(spans, "op");
  const std::vector<OpTotal> ranking = totals(ops);
  fmt::format_to(std::back_inserter(out),
                 "<section><h2>Time line of step {} <span class=\"unit\">{:.4g} ms, phases above, "
                 "ops below</span></h2>\n<div class=\"line\">",
                 step->step, step->duration / 1e3);
  size_t phase = 0;
  for (const TraceRecord* span : outermost(spans, "phase"))
    append_bar(out, *span, *step, phase++ % kNamedOps,
               span->duration > step->duration / 12 ? span->name : "");
  out += "</div>\n<div class=\"line\">";
  for (const TraceRecord* op : ops) append_bar(out, *op, *step, colour_of(op->name, ranking), "");
  out += "</div>\n";
  append_legend(out, ranking, step->duration);
  out += "</section>\n";
}

}  // namespace obelisk
