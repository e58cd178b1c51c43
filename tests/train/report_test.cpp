#include "framework/train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/train/allocation_count.h"
#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

using testing::HasSubstr;
using testing::Not;

RunFacts some_facts() {
  RunFacts facts;
  facts.recipe = "recipes/llm/quick<start>.yaml";
  facts.resolved_recipe = "task: pretrain  # <b>\n";
  facts.folder = "runs/quickstart/001";
  facts.model = "gpt2, 6 layers";
  facts.parameters = 2700000;
  facts.machine = machine_info();
  facts.libraries = {{"oneDNN", "2.6.3"}};
  return facts;
}

StepRecord step_at(int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.learning_rate = 1e-3;
  record.gradient_norm = 0.5;
  record.seconds = 0.1;
  record.tokens = 4096;
  record.tokens_seen = 4096 * step;
  record.memory_bytes = 300 << 20;
  record.phases = {0.01, 0.02, 0.04, 0.005, 0.005};
  return record;
}

std::string without(std::string text, const std::string& begin, const std::string& end) {
  for (size_t at; (at = text.find(begin)) != std::string::npos;)
    text.erase(at, text.find(end, at) + end.size() - at);
  return text;
}

// Tags opened and closed in order. Attribute values hold no '>'.
void expect_balanced(const std::string& markup) {
  std::vector<std::string> open;
  for (size_t at = markup.find('<'); at != std::string::npos; at = markup.find('<', at + 1)) {
    const std::string tag = markup.substr(at + 1, markup.find('>', at) - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (name == "!DOCTYPE" || name == "meta" || tag.back() == '/') continue;
    if (name[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

// Well-formed, every number a number, and nothing that a network would be asked for.
void expect_sound(const std::string& html) {
  EXPECT_THAT(html, testing::StartsWith("<!DOCTYPE html>"));
  expect_balanced(without(without(html, "<script", "</script>"), "<style", "</style>"));
  const std::string without_svg_name = without(html, "http://www.w3.org/2000/", "svg");
  for (const char* outside : {"http:", "https:", "url(", "@import", "src=", "<link"})
    EXPECT_EQ(without_svg_name.find(outside), std::string::npos) << outside;
  for (const char* number : {"=\"nan", "=\"inf", "\"-nan", "L-nan", "Mnan", "[nan", ",nan"})
    EXPECT_EQ(html.find(number), std::string::npos) << number;
}

TEST(RunReport, WholeRun) {
  RunReport report(some_facts());
  for (int i = 1; i <= 100; ++i) {
    report.step(step_at(i, 4.0 / std::sqrt(i)));
    if (i % 25 == 0) report.validation({i, 4.1 / std::sqrt(i), 1000, 0.5});
  }
  RunResult result;
  result.steps = 100;
  result.seconds = 125;
  result.sample = "In the <beginning> & \x1b[31m";
  report.finish(result);
  const std::string html = report.html();
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("<h1>quick&lt;start&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"state good\">finished</span>"));
  EXPECT_THAT(html, HasSubstr("<span>validation loss</span><b>0.4100</b><span>at step 100<"));
  EXPECT_THAT(html, HasSubstr("<span>training loss</span><b>0.4000</b><span>at step 100<"));
  EXPECT_THAT(html, HasSubstr("<span>tokens a second</span><b>41k</b><span>0.1 s a step<"));
  EXPECT_THAT(html, HasSubstr("<span>time</span><b>2:05</b><span>410k tokens<"));
  EXPECT_THAT(html, HasSubstr("<span>parameters</span><b>2.7M</b><span>1 rank x 1 thread<"));
  EXPECT_THAT(html, HasSubstr("<span>peak memory</span><b>300 MiB</b>"));
  EXPECT_THAT(html, HasSubstr("In the &lt;beginning&gt; &amp; \xEF\xBF\xBD[31m"));
  EXPECT_THAT(html, HasSubstr("task: pretrain  # &lt;b&gt;"));
  EXPECT_THAT(html, HasSubstr("backward 40.0%"));
  EXPECT_THAT(html, HasSubstr("other 20.0%"));
  EXPECT_THAT(html, HasSubstr("<tr><th>oneDNN</th><td>2.6.3</td></tr>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(RunReport, BestValidationIsNamedWhenItIsNotTheLast) {
  RunReport report(some_facts());
  report.validation({10, 2, 100, 1});
  EXPECT_THAT(report.html(), Not(HasSubstr("best ")));
  report.validation({20, 3, 100, 1});
  EXPECT_THAT(report.html(), HasSubstr("<b>3.0000</b><span>best 2.0000 at 10</span>"));
}

TEST(RunReport, ShareOfPeakAndMemory) {
  RunFacts facts = some_facts();
  facts.flops_per_token = 1e6;
  facts.peak_flops = 200e9;
  facts.state = {.weights = 50 << 20, .gradients = 50 << 20, .moments = 100 << 20};
  RunReport report(facts);
  report.step(step_at(1, 2.0));  // 40960 tokens a second, 300 MiB
  const std::string html = report.html();
  expect_balanced(without(html, "<script>", "</script>"));
  EXPECT_THAT(html, HasSubstr("<span>share of peak</span><b>20%</b>"));
  EXPECT_THAT(html, HasSubstr("of 200G flop/s, f32"));
  EXPECT_THAT(html, HasSubstr("weights 16.7% <span>50 MiB</span>"));
  EXPECT_THAT(html, HasSubstr("moments 33.3% <span>100 MiB</span>"));
  EXPECT_THAT(html, HasSubstr("activations and temporaries 33.3% <span>100 MiB</span>"));
  const std::string plain = RunReport(some_facts()).html();
  EXPECT_THAT(plain, Not(HasSubstr("share of peak")));
  EXPECT_THAT(plain, Not(HasSubstr("Peak memory of")));
}

TEST(RunReport, TimelineOfAStep) {
  RunReport report(some_facts());
  const std::vector<TraceRecord> spans = {
      {"mul", "op", "", 3, 1100, 100},
      {"matmul", "op", "layers.0<", 3, 1000, 500},  // holds mul
      {"gelu", "op", "", 3, 1500, 250},
      {"forward", "phase", "", 3, 1000, 900},
      {"step", "step", "", 3, 1000, 1000},
  };
  report.timeline(spans);
  const std::string html = report.html();
  expect_balanced(without(html, "<script>", "</script>"));
  EXPECT_THAT(html, HasSubstr("Time line of step 3 <span class=\"unit\">1 ms"));
  EXPECT_THAT(html,
              HasSubstr("left:0.000%;width:50.000%\" title=\"matmul in layers.0&lt;: 0.500 ms"));
  EXPECT_THAT(html, HasSubstr("left:50.000%;width:25.000%\" title=\"gelu: 0.250 ms"));
  EXPECT_THAT(html, HasSubstr("left:0.000%;width:90.000%\" title=\"forward: 0.900 ms\">forward<"));
  EXPECT_THAT(html, HasSubstr("matmul 50.0% <span>0.5 ms</span>"));
  EXPECT_THAT(html, Not(HasSubstr("title=\"mul:")));
  report.timeline({});
  EXPECT_THAT(report.html(), Not(HasSubstr("Time line")));
}

TEST(RunReport, NothingHappenedYet) {
  const RunReport report(some_facts());
  const std::string html = report.html();
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("running"));
  EXPECT_THAT(html, HasSubstr("No finite value to draw."));
}

TEST(RunReport, OneStepNoValidation) {
  RunReport report(some_facts());
  report.step(step_at(1, 4.2));
  const std::string html = report.html();
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("Written at step 1 while the run was going on"));
  EXPECT_THAT(html, Not(HasSubstr(">validation")));
}

TEST(RunReport, NanLossesAndAFailure) {
  RunReport report(some_facts());
  for (int i = 1; i <= 20; ++i)
    report.step(step_at(i, i > 10 ? std::numeric_limits<double>::quiet_NaN() : 3));
  report.validation({20, std::numeric_limits<double>::infinity(), 10, 1});
  RunResult result;
  result.ending = Ending::Failed;
  result.error = "loss is NaN <at> step 11";
  report.finish(result);
  const std::string html = report.html();
  expect_sound(html);
  EXPECT_THAT(html, HasSubstr("<span class=\"state alert\">failed</span>"));
  EXPECT_THAT(html, HasSubstr("loss is NaN &lt;at&gt; step 11"));
  EXPECT_THAT(html, HasSubstr("11 values are NaN or Inf"));
  EXPECT_THAT(html, HasSubstr("<b>nan</b>"));
}

TEST(RunReport, AMillionStepsStaySmallAndAllocateNothing) {
  RunReport report(some_facts());
  report.step(step_at(1, 4));
  const int64_t before = allocation_count();
  for (int64_t i = 2; i <= 1000000; ++i) {
    report.step(step_at(i, 4 - 2e-6 * static_cast<double>(i)));
    if (i % 100 == 0) report.validation({i, 3, 10, 0.1});
  }
  EXPECT_EQ(allocation_count() - before, 0);
  const std::string html = report.html();
  EXPECT_LT(html.size(), 600u * 1024);
  EXPECT_THAT(html, HasSubstr(">1M</text>"));
}

TEST(RunReport, IsWrittenAsAWhole) {
  const TempFolder temp;
  RunReport report(some_facts());
  report.write(temp.file("report.html"));
  report.step(step_at(1, 4));
  report.write(temp.file("report.html"));
  EXPECT_EQ(read_text(temp.file("report.html")), report.html());
  EXPECT_THAT(error_of<IoError>([&] { report.write(temp.file("no/report.html")); }),
              HasSubstr("/no/report.html' must be writable"));
}

}  // namespace
}  // namespace obelisk
