#include "framework/train/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "framework/base/build_info.h"
#include "framework/train/report_chart.h"
#include "framework/train/report_page.h"
#include "framework/train/report_text.h"
#include "framework/train/report_timeline.h"
#include "framework/train/run_folder.h"

namespace obelisk {
namespace {

constexpr int kWideChart = 1072, kWideChartHeight = 360;  // pixels in the widest layout

// A smoothed curve averages over this part of its length to either side.
constexpr double kSmoothParts = 100;

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return fmt::format("{}", loss);
  return std::abs(loss) < 1000 ? fmt::format("{:.4f}", loss) : fmt::format("{:.2e}", loss);
}

std::string recipe_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

// A measured curve: the raw values faint, their running mean on top.
Chart measured(const char* title, const char* unit, const char* name, const Series& series) {
  Chart chart;
  chart.title = title;
  chart.unit = unit;
  chart.curves.push_back({"", "raw", outline(series)});
  const double window = static_cast<double>(series.buckets().size()) / kSmoothParts;
  chart.curves.push_back({name, "line1", smooth(series, window)});
  for (const Series::Bucket& bucket : series.buckets())
    if (bucket.finite < bucket.size) chart.bad.push_back(bucket.first_x);
  chart.not_finite = series.not_finite();
  chart.clip_spikes = true;
  return chart;
}

struct Share {
  std::string name;
  double amount;
};

// A bar cut into shares, with a legend; what is not positive is left out.
std::string share_bar(const char* title, const std::vector<Share>& shares,
                      std::string (*text)(double)) {
  double total = 0;
  for (const Share& share : shares) total += std::max(0.0, share.amount);
  if (!(total > 0)) return "";
  std::string bar, legend;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto& [name, amount] = shares[i];
    if (!(amount > 0)) continue;
    const double percent = 100 * amount / total;
    fmt::format_to(std::back_inserter(bar),
                   R"(<i class="c{}" style="width:{:.2f}%" title="{} {:.1f}%"></i>)", i, percent,
                   name, percent);
    fmt::format_to(std::back_inserter(legend),
                   R"(<span><i class="c{}"></i>{} {:.1f}% <span>{}</span></span>)", i, name,
                   percent, text(amount));
  }
  return fmt::format(
      "<section><h2>{}</h2><div class=\"bar\">{}</div><div class=\"shares\">{}</div></section>\n",
      title, bar, legend);
}

void append_row(std::string& out, const char* label, const std::string& value) {
  if (value.empty()) return;
  fmt::format_to(std::back_inserter(out), "<tr><th>{}</th><td>{}</td></tr>\n", html_escape(label),
                 html_escape(value));
}

}  // namespace

RunReport::RunReport(RunFacts facts) : facts_(std::move(facts)) {}

void RunReport::step(const StepRecord& record) {
  last_ = record;
  const auto x = static_cast<double>(record.step);
  loss_.add(x, record.loss);
  learning_rate_.add(x, record.learning_rate);
  gradient_norm_.add(x, record.gradient_norm);
  if (record.seconds > 0) throughput_.add(x, record.tokens / record.seconds);
  for (const auto& [name, member] : kPhases) phases_.*member += record.phases.*member;
  step_seconds_ += record.seconds;
  step_tokens_ += record.tokens;
  peak_memory_ = std::max(peak_memory_, record.memory_bytes);
}

void RunReport::validation(const ValidationRecord& record) {
  last_validation_ = record;
  validation_loss_.add(static_cast<double>(record.step), record.loss);
  validation_seconds_ += record.seconds;
}

void RunReport::timeline(std::span<const TraceRecord> spans) {
  timeline_.clear();
  append_timeline(timeline_, spans);
}

void RunReport::finish(RunResult result) { result_ = std::move(result); }

std::string RunReport::head() const {
  const char* state = "running";
  const char* look = "busy";
  if (result_) {
    state = ending_name(result_->ending).data();
    look = result_->ending == Ending::Failed ? "alert" : "good";
  }
  std::string out = fmt::format(
      "<header><h1>{}</h1><span class=\"state {}\">{}</span><p>{} &middot; {}</p></header>\n",
      html_escape(recipe_name(facts_.recipe)), look, state, html_escape(facts_.model),
      html_escape(facts_.folder));
  if (!result_)
    out += fmt::format(
        "<p class=\"note\">Written at step {} while the run was going on; it is rewritten at each "
        "validation.</p>\n",
        last_.step);
  if (result_ && !result_->error.empty())
    out += fmt::format("<div class=\"error\">{}</div>\n", html_escape(result_->error));
  return out;
}

std::string RunReport::tiles() const {
  std::string out = "<div class=\"tiles\">\n";
  const auto tile = [&](const char* label, const std::string& value, const std::string& note) {
    fmt::format_to(std::back_inserter(out),
                   "<div class=\"tile\"><span>{}</span><b>{}</b><span>{}</span></div>\n", label,
                   value, note);
  };
  if (validation_loss_.size() > 0) {
    const Point best = validation_loss_.lowest();
    tile("validation loss", loss_text(last_validation_.loss),
         std::isnan(best.y) || best.y == last_validation_.loss
             ? fmt::format("at step {}", last_validation_.step)
             : fmt::format("best {} at {}", loss_text(best.y), tick_text(best.x)));
  }
  if (loss_.size() > 0) {
    tile("training loss", loss_text(last_.loss), fmt::format("at step {}", last_.step));
    const auto steps = static_cast<double>(loss_.size());
    if (step_seconds_ > 0)
      tile("tokens a second", count_text(step_tokens_ / step_seconds_),
           fmt::format("{:.3g} s a step", step_seconds_ / steps));
    if (step_seconds_ > 0 && facts_.peak_flops > 0)
      tile("share of peak",
           fmt::format("{:.0f}%", 100 * step_tokens_ / step_seconds_ * facts_.flops_per_token /
                                      facts_.peak_flops),
           fmt::format("of {} flop/s, f32", count_text(facts_.peak_flops)));
  }
  tile("time", duration_text(result_ ? result_->seconds : step_seconds_ + validation_seconds_),
       fmt::format("{} tokens", count_text(static_cast<double>(last_.tokens_seen))));
  if (facts_.parameters > 0)
    tile("parameters", count_text(static_cast<double>(facts_.parameters)),
         fmt::format("{} rank{} x {} thread{}", facts_.ranks, facts_.ranks == 1 ? "" : "s",
                     facts_.threads_per_rank, facts_.threads_per_rank == 1 ? "" : "s"));
  if (peak_memory_ > 0)
    tile("peak memory", bytes_text(static_cast<double>(peak_memory_)), "tensors, rank 0");
  return out + "</div>\n";
}

std::string RunReport::charts() const {
  Chart loss = measured("Loss", "nats a token, by step", "training", loss_);
  loss.width = kWideChart;
  loss.height = kWideChartHeight;
  if (validation_loss_.size() > 0) {
    Curve points{"validation", "line2", outline(validation_loss_), true};
    loss.not_finite += validation_loss_.not_finite();
    for (const Point& point : points.points)
      if (!std::isfinite(point.y)) loss.bad.push_back(point.x);
    loss.curves.push_back(std::move(points));
  }
  Chart speed = measured("Throughput", "tokens a second, by step", "tokens/s", throughput_);
  speed.from_zero = true;
  Chart norm = measured("Gradient norm", "before clipping, by step", "norm", gradient_norm_);
  norm.from_zero = true;
  Chart rate;
  rate.title = "Learning rate";
  rate.unit = "by step";
  rate.from_zero = true;
  rate.curves.push_back({"rate", "line1", outline(learning_rate_)});

  std::string out = "<div class=\"charts\">\n";
  for (const Chart* chart : {&loss, &speed, &norm, &rate}) append_chart(out, *chart);
  return out + "</div>\n";
}

std::string RunReport::phase_bar() const {
  std::vector<Share> shares;
  double other = step_seconds_;
  for (const auto& [name, member] : kPhases) {
    shares.push_back({name, phases_.*member});
    other -= phases_.*member;
  }
  shares.push_back({"other", other});
  return share_bar("Where the time of the steps went", shares,
                   [](double seconds) { return fmt::format("{:.3g} s", seconds); });
}

std::string RunReport::memory_bar() const {
  const StateBytes& state = facts_.state;
  const double held = state.weights + state.gradients + state.moments;
  if (!(held > 0) || peak_memory_ <= 0) return "";
  // The state is known from sizes, the peak is measured: the rest is what a step takes and gives
  // back.
  return share_bar("Peak memory of rank 0",
                   {{"weights", state.weights},
                    {"gradients", state.gradients},
                    {"moments", state.moments},
                    {"activations and temporaries", static_cast<double>(peak_memory_) - held}},
                   bytes_text);
}

std::string RunReport::texts() const {
  std::string out;
  if (result_ && !result_->sample.empty())
    out += fmt::format("<section><h2>Sample</h2><pre class=\"sample\">{}</pre></section>\n",
                       html_escape(result_->sample));
  if (!facts_.resolved_recipe.empty())
    out += fmt::format(
        "<section><details><summary>Recipe, every value resolved</summary><pre>{}</pre></details>"
        "</section>\n",
        html_escape(facts_.resolved_recipe));
  return out;
}

std::string RunReport::facts_table() const {
  const MachineInfo& machine = facts_.machine;
  const BuildInfo& build = build_info();
  std::string out = "<section><h2>Machine and build</h2><table>\n";
  append_row(out, "recipe", facts_.recipe);
  append_row(out, "ranks",
             fmt::format("{} x {} thread{}", facts_.ranks, facts_.threads_per_rank,
                         facts_.threads_per_rank == 1 ? "" : "s"));
  append_row(out, "tokens a step", fmt::format("{}", facts_.tokens_per_step));
  append_row(out, "host", machine.hostname);
  append_row(out, "processor",
             fmt::format("{}, {} core{} for this run, {}", machine.cpu_model, machine.cores,
                         machine.cores == 1 ? "" : "s", machine.isa));
  append_row(out, "memory",
             fmt::format("{}, {} available at the start",
                         bytes_text(static_cast<double>(machine.memory_total)),
                         bytes_text(static_cast<double>(machine.memory_available))));
  append_row(out, "system", machine.kernel);
  append_row(out, "build", build_id());
  append_row(out, "compiler flags", std::string(build.flags));
  for (const auto& [name, version] : facts_.libraries) append_row(out, name.c_str(), version);
  return out + "</table></section>\n";
}

std::string RunReport::html() const {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  out += html_escape(recipe_name(facts_.recipe)) + " - obelisk run</title>\n<style>";
  out += kReportStyle;
  out += "</style>\n</head>\n<body>\n";
  out += head() + tiles() + charts() + phase_bar() + memory_bar() + timeline_ + texts() +
         facts_table();
  out += "<script>";
  out += kReportScript;
  out += "</script>\n</body>\n</html>\n";
  return out;
}

void RunReport::write(const std::string& path) const { write_file(path, html()); }

}  // namespace obelisk
