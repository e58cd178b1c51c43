#include "framework/base/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/scope.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class Trace : public ::testing::Test {
 protected:
  ~Trace() override { std::filesystem::remove(path_); }
  nlohmann::json read() const {
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }
  static void work(int64_t step) {
    const TraceStep trace(step);
    const TraceSpan forward("forward");
    static const std::string kPath = "layers.0.attn";
    const PathScope path(kPath);
    const OpScope op("matmul");
  }
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("trace_" + std::to_string(getpid()))).string();
};

// The fields that Chrome's trace viewer and Perfetto require of complete and metadata events.
TEST_F(Trace, EventsFollowTheFormatAndNest) {
  {
    const TraceFile file(path_, 1, 3, 2);
    for (int64_t step = 1; step <= 6; ++step) work(step);
  }
  const nlohmann::json events = read();
  ASSERT_TRUE(events.is_array());
  ASSERT_EQ(events.size(), 1u + 2 * 3);
  EXPECT_EQ(events[0]["ph"], "M");
  EXPECT_EQ(events[0]["args"]["name"], "rank 1");
  for (size_t i = 1; i < events.size(); ++i) {
    const nlohmann::json& event = events[i];
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["pid"], 1);
    EXPECT_EQ(event["tid"], 0);
    EXPECT_TRUE(event["name"].is_string() && event["cat"].is_string());
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_LT(event["ts"].get<double>(), 2 * 86400e6);
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_EQ(event["args"]["step"], i <= 3 ? 3 : 4);
  }
  // Inner spans end first.
  EXPECT_EQ(events[1]["name"], "matmul");
  EXPECT_EQ(events[1]["cat"], "op");
  EXPECT_EQ(events[1]["args"]["path"], "layers.0.attn");
  EXPECT_EQ(events[2]["name"], "forward");
  EXPECT_FALSE(events[2]["args"].contains("path"));
  EXPECT_EQ(events[3]["name"], "step");
  EXPECT_LE(events[3]["ts"].get<double>(), events[1]["ts"].get<double>());
  EXPECT_GE(events[3]["dur"].get<double>(), events[1]["dur"].get<double>());
}

TEST_F(Trace, KeepsTheFirstChosenStep) {
  const TraceFile file(path_, 0, 3, 2);
  for (int64_t step = 1; step <= 2; ++step) work(step);
  EXPECT_TRUE(file.first_step().empty());
  for (int64_t step = 3; step <= 6; ++step) work(step);
  ASSERT_EQ(file.first_step().size(), 3u);
  const TraceRecord &op = file.first_step()[0], &step = file.first_step()[2];
  EXPECT_EQ(op.name, "matmul");
  EXPECT_EQ(op.category, "op");
  EXPECT_EQ(op.path, "layers.0.attn");
  EXPECT_EQ(step.category, "step");
  EXPECT_EQ(step.step, 3);
  EXPECT_LE(step.begin, op.begin);
  EXPECT_GE(step.duration, op.duration);
}

TEST_F(Trace, WritesNothingWhenNoStepIsChosen) {
  {
    const TraceFile file(path_, 0, 3, 0);
    for (int64_t step = 1; step <= 6; ++step) work(step);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  work(3);  // without a file
}

TEST_F(Trace, SaysWhenItCannotBeWritten) {
  const TraceFile file("/no/such/folder/trace.json", 0, 1, 1);
  EXPECT_ERROR(work(1), IoError, io_error_text("trace", "/no/such/folder/trace.json", ENOENT));
}

}  // namespace
}  // namespace obelisk
