#include "framework/train/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "framework/base/error.h"
#include "framework/train/report_text.h"
#include "tests/train/allocation_count.h"
#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

using nlohmann::json;

std::vector<json> read_lines(const std::string& path) {
  std::vector<json> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

StepRecord some_step() {
  StepRecord record;
  record.step = 12;
  record.loss = 0.1 + 0.2;
  record.learning_rate = 1e-5;
  record.gradient_norm = 1.0 / 3;
  record.seconds = 0.25;
  record.tokens = 8192;
  record.memory_bytes = int64_t{5} << 40;
  record.tokens_seen = 98304;
  record.phases = {0.01, 0.06, 0.12, 0.02, 0.03};
  return record;
}

TEST(JsonString, EveryByteStaysParsableAndTextSurvives) {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  std::string out;
  append_json_string(out, text);
  const std::string back = json::parse(out).get<std::string>();
  EXPECT_EQ(back.substr(0, 128), text.substr(0, 128));
  out.clear();
  append_json_string(out, "\"quoted\" \\ \xE2\x82\xAC\n");
  EXPECT_EQ(json::parse(out).get<std::string>(), "\"quoted\" \\ \xE2\x82\xAC\n");
}

TEST(EventLog, StartNamesBuildMachineRecipeAndRanks) {
  const TempFolder temp;
  const std::string path = EventLog::path_in(temp.path(), 3);
  EXPECT_EQ(path, temp.path() + "/events.rank3.jsonl");
  RunFacts facts;
  facts.recipe = "recipes/\"odd\"\n.yaml";
  facts.model = "gpt2";
  facts.parameters = 2700000;
  facts.ranks = 4;
  facts.machine = machine_info();
  facts.libraries = {{"oneDNN", "2.6.3"}, {"Open MPI", "4.1.4"}};
  EventLog(path).run_start(facts, 3);
  const json line = read_lines(path).at(0);
  EXPECT_EQ(line["event"], "run_start");
  EXPECT_THAT(line["started"].get<std::string>(), testing::MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(line["recipe"], facts.recipe);
  EXPECT_EQ(line["rank"], 3);
  EXPECT_EQ(line["ranks"], 4);
  EXPECT_EQ(line["parameters"], 2700000);
  EXPECT_EQ(line["build"], build_id());
  EXPECT_EQ(line["modified"], build_info().modified);
  EXPECT_EQ(line["compiler_flags"], build_info().flags);
  EXPECT_EQ(line["hostname"], facts.machine.hostname);
  EXPECT_EQ(line["cores"], facts.machine.cores);
  EXPECT_EQ(line["memory_total_bytes"], facts.machine.memory_total);
  EXPECT_EQ(line["libraries"], json({{"oneDNN", "2.6.3"}, {"Open MPI", "4.1.4"}}));
}

TEST(EventLog, StartWithoutLibrariesIsValid) {
  const TempFolder temp;
  EventLog(temp.file("e")).run_start({}, 0);
  EXPECT_EQ(read_lines(temp.file("e")).at(0)["libraries"], json::object());
}

TEST(EventLog, StepRoundTripsEveryNumber) {
  const TempFolder temp;
  const StepRecord record = some_step();
  EventLog(temp.file("e")).step(record);
  const json line = read_lines(temp.file("e")).at(0);
  EXPECT_EQ(line["event"], "step");
  EXPECT_GE(line["time"].get<double>(), 0);
  EXPECT_EQ(line["step"], record.step);
  EXPECT_EQ(line["loss"].get<double>(), record.loss) << "bit for bit";
  EXPECT_EQ(line["learning_rate"].get<double>(), record.learning_rate);
  EXPECT_EQ(line["gradient_norm"].get<double>(), record.gradient_norm);
  EXPECT_EQ(line["seconds"], record.seconds);
  EXPECT_EQ(line["tokens"], record.tokens);
  EXPECT_EQ(line["memory_bytes"], record.memory_bytes);
  EXPECT_EQ(line["tokens_seen"], record.tokens_seen);
  EXPECT_EQ(line["phases"], json({{"data", 0.01},
                                  {"forward", 0.06},
                                  {"backward", 0.12},
                                  {"reduce", 0.02},
                                  {"optimizer", 0.03}}));
}

TEST(EventLog, OddDoublesRoundTrip) {
  const TempFolder temp;
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      5e-324,
                                      1.7976931348623157e308,
                                      1e22,
                                      1e23,
                                      123456789012345680.0,
                                      0.1f,
                                      -1e-17,
                                      std::nextafter(1.0, 2.0)};
  {
    EventLog log(temp.file("e"));
    for (const double value : values) log.span("x", 0, value);
  }
  const auto lines = read_lines(temp.file("e"));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto back = lines[i]["seconds"].get<double>();
    EXPECT_EQ(back, values[i]);
    EXPECT_EQ(std::signbit(back), std::signbit(values[i]));
  }
}

TEST(EventLog, NanAndInfAreNullWithText) {
  const TempFolder temp;
  {
    EventLog log(temp.file("e"));
    StepRecord record = some_step();
    record.loss = std::numeric_limits<double>::quiet_NaN();
    record.gradient_norm = std::numeric_limits<double>::infinity();
    record.phases.data = -std::numeric_limits<double>::infinity();
    log.step(record);
    log.validation({5, std::numeric_limits<double>::quiet_NaN(), 10, 1});
  }
  const auto lines = read_lines(temp.file("e"));
  EXPECT_TRUE(lines[0]["loss"].is_null());
  EXPECT_EQ(lines[0]["loss_text"], "nan");
  EXPECT_TRUE(lines[0]["gradient_norm"].is_null());
  EXPECT_EQ(lines[0]["gradient_norm_text"], "inf");
  EXPECT_EQ(lines[0]["phases"]["data_text"], "-inf");
  EXPECT_TRUE(lines[1]["loss"].is_null());
}

TEST(EventLog, OtherLines) {
  const TempFolder temp;
  {
    EventLog log(temp.file("e"));
    log.validation({250, 1.75, 111540, 3.5});
    log.span("sample", 250, 0.5);
    log.message(log::Level::Warn, "a \"b\"\n\xFF");
    RunResult result;
    result.ending = Ending::TimeLimit;
    result.steps = 250;
    result.tokens = 1000;
    result.seconds = 60.5;
    result.validation_loss = 1.75;
    result.sample = "In the beginning";
    log.run_end(result);
    result.ending = Ending::Failed;
    result.error = "boom";
    log.run_end(result);
  }
  const auto lines = read_lines(temp.file("e"));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["event"], "validation");
  EXPECT_EQ(lines[0]["loss"], 1.75);
  EXPECT_EQ(lines[0]["tokens"], 111540);
  EXPECT_EQ(lines[1]["event"], "span");
  EXPECT_EQ(lines[1]["name"], "sample");
  EXPECT_EQ(lines[2]["event"], "message");
  EXPECT_EQ(lines[2]["level"], "warning");
  EXPECT_EQ(lines[2]["text"], "a \"b\"\n\xEF\xBF\xBD");
  EXPECT_EQ(lines[3]["event"], "run_end");
  EXPECT_EQ(lines[3]["outcome"], "time limit");
  EXPECT_EQ(lines[3]["sample"], "In the beginning");
  EXPECT_FALSE(lines[3].contains("error"));
  EXPECT_TRUE(lines[3]["loss"].is_null());
  EXPECT_EQ(lines[4]["outcome"], "failed");
  EXPECT_EQ(lines[4]["error"], "boom");
}

TEST(EventLog, EndingsHaveNames) {
  EXPECT_EQ(ending_name(Ending::Finished), "finished");
  EXPECT_EQ(ending_name(Ending::TimeLimit), "time limit");
  EXPECT_EQ(ending_name(Ending::Stopped), "stopped");
  EXPECT_EQ(ending_name(Ending::Failed), "failed");
}

TEST(EventLog, AppendsToWhatIsThere) {
  const TempFolder temp;
  EventLog(temp.file("e")).span("first", 0, 1);
  EventLog(temp.file("e")).span("second", 0, 1);
  EXPECT_EQ(read_lines(temp.file("e")).size(), 2u);
}

TEST(EventLog, ThreadsWriteWholeLines) {
  const TempFolder temp;
  {
    EventLog log(temp.file("e"));
    std::thread other([&] {
      for (int i = 0; i < 200; ++i) log.message(log::Level::Warn, std::string(300, 'x'));
    });
    for (int i = 0; i < 200; ++i) log.step(some_step());
    other.join();
  }
  EXPECT_EQ(read_lines(temp.file("e")).size(), 400u);
}

TEST(EventLog, SteadyStateAllocatesNothing) {
  const TempFolder temp;
  EventLog log(temp.file("e"));
  StepRecord record = some_step();
  log.step(record);
  const int64_t before = allocation_count();
  for (int i = 0; i < 1000; ++i) {
    record.step = i;
    record.loss = 1.0 / (i + 3);
    record.gradient_norm = i % 7 == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e-300 * i;
    log.step(record);
    log.validation({i, 1.0 / (i + 7), 1000, 0.1});
    log.span("validate", i, 0.3);
  }
  EXPECT_EQ(allocation_count() - before, 0);
}

TEST(EventLog, AllocationsAreCounted) {
  const int64_t before = allocation_count();
  const auto block = std::make_unique<std::string>(1000, 'x');
  EXPECT_GE(allocation_count() - before, 2) << "the counter behind the test above is dead";
}

TEST(EventLog, FullDiskIsOneSentence) {
  EventLog log("/dev/full");
  EXPECT_EQ(error_of<IoError>([&] { log.step(some_step()); }),
            "events: '/dev/full' needs space on its disk; got: No space left on device; free some, "
            "or choose a run.folder on another disk");
}

TEST(EventLog, MissingFolderIsOneSentence) {
  EXPECT_EQ(error_of<IoError>([] { EventLog("/no/such/folder/e"); }),
            "events: '/no/such/folder/e' must be writable; got: No such file or directory; choose "
            "another run.folder");
}

}  // namespace
}  // namespace obelisk
