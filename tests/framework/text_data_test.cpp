#include "framework/data/text_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "framework/base/log.h"
#include "tests/support/expect_error.h"

namespace obelisk {
namespace {

class TextFiles : public ::testing::Test {
 protected:
  TextFiles() { std::filesystem::create_directories(folder_); }
  ~TextFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("text_files_" + std::to_string(getpid()));
};

TEST_F(TextFiles, ReadsText) { EXPECT_EQ(read_text_file(write("a", "hello\n")), "hello\n"); }

TEST_F(TextFiles, SaysWhatIsWrongWithAFile) {
  EXPECT_ERROR(read_text_file("no/such/file"), IoError,
               "data.path: the file must exist; got 'no/such/file'; set data.path to a text file, "
               "relative to the working directory");
  const std::string empty = write("empty", "");
  EXPECT_ERROR(
      read_text_file(empty), IoError,
      "data.path: the file must hold text; got '" + empty + "' with 0 bytes; give another file");
  const std::string binary = write("binary", std::string("ab\0cd", 5));
  EXPECT_ERROR(read_text_file(binary), IoError,
               "data.path: the file must be text; got '" + binary +
                   "' with a zero byte at offset 2; give a text file, or set tokenizer.kind: byte "
                   "to train on bytes");
  EXPECT_EQ(read_text_file(binary, TextKind::Bytes), std::string("ab\0cd", 5));
  EXPECT_ERROR(read_text_file(folder_.string()), IoError,
               "data.path: must be a text file; got the folder '" + folder_.string() +
                   "'; name a file in it");
}

TEST_F(TextFiles, SkipsAByteOrderMark) {
  const std::string marked = write("bom", "\xEF\xBB\xBFhello");
  EXPECT_EQ(read_text_file(marked), "hello");
  EXPECT_EQ(read_text_file(marked, TextKind::Bytes), "\xEF\xBB\xBFhello");
}

TEST_F(TextFiles, WarnsOfCarriageReturns) {
  std::vector<std::string> lines;
  log::Route route([&](log::Level, std::string_view text) { lines.emplace_back(text); });
  const std::string path = write("dos", "one\r\ntwo\r\n");
  EXPECT_EQ(read_text_file(path), "one\r\ntwo\r\n");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "data.path: lines of '" + path +
                          "' end in CR LF, and the carriage returns are trained on; convert the "
                          "file to LF if that is not wanted");
  read_text_file(path, TextKind::Bytes);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(TextFiles, RefusesWhatMayBlockOrNeverEnd) {
  EXPECT_ERROR(read_text_file("/dev/zero"), IoError,
               "data.path: must be a regular file; got '/dev/zero', a pipe, socket or device; copy "
               "its text into a file");
}

// Root reads everything, so the unreadable file is one whose reading fails for another reason.
TEST_F(TextFiles, SaysWhenAFileCannotBeRead) {
  const std::string path = write("locked", "text");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  if (geteuid() == 0) {
    EXPECT_ERROR(read_text_file("/proc/self/mem"), IoError,
                 "data.path: the file must be readable; got '/proc/self/mem': Input/output error; "
                 "check its permissions and disk");
    return;
  }
  EXPECT_ERROR(read_text_file(path), IoError,
               "data.path: the file must be readable; got '" + path +
                   "': Permission denied; check its permissions and disk");
}

class Windows : public ::testing::Test {
 protected:
  static std::vector<int32_t> counting(int32_t n) {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < n; ++i) tokens.push_back(i);
    return tokens;
  }
  ExecContext context_;
  ExecScope scope_{context_};
};

TEST_F(Windows, SplitsLikeNanoGpt) {
  // 1,115,394 characters: 1,003,854 for training, 111,540 for validation.
  const std::string text(1115394, 'a');
  const TextData data = split_text(*make_byte_tokenizer(), text, 0.1, 64, "x");
  EXPECT_EQ(data.train.size(), 1003854u);
  EXPECT_EQ(data.validation.size(), 111540u);
  EXPECT_EQ(num_ordered_windows(data.validation, 64) * 64, 111488);
}

TEST_F(Windows, RefusesTextsThatAreTooShort) {
  EXPECT_ERROR(split_text(*make_byte_tokenizer(), std::string(100, 'a'), 0.1, 64, "x.txt"),
               ValueError,
               "data.path: the validation split must hold at least 65 tokens, one sequence and its "
               "last target; got 10 from 'x.txt' with data.validation_fraction 0.1; give a longer "
               "text, lower batch.sequence_length, or change data.validation_fraction");
  EXPECT_ERROR(
      split_text(*make_byte_tokenizer(), std::string(100, 'a'), 0.9, 64, "x.txt"), ValueError,
      "data.path: the training split must hold at least 65 tokens, one sequence and its last "
      "target; got 10 from 'x.txt' with data.validation_fraction 0.9; give a longer text, lower "
      "batch.sequence_length, or change data.validation_fraction");
}

TEST_F(Windows, TargetsFollowInputs) {
  const auto tokens = counting(100);
  const TokenBatch batch = random_windows(tokens, 8, 1, 0, 0, 5);
  for (int64_t i = 0; i < batch.inputs_BT.numel(); ++i)
    EXPECT_EQ(batch.targets_BT.data<int64_t>()[i], batch.inputs_BT.data<int64_t>()[i] + 1);
  EXPECT_EQ(batch.num_targets(), 40);
}

TEST_F(Windows, BatchesDoNotDependOnHowTheyAreCut) {
  const auto tokens = counting(1000);
  const TokenBatch whole = random_windows(tokens, 8, 7, 3, 0, 6);
  const TokenBatch part = random_windows(tokens, 8, 7, 3, 4, 2);
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(part.inputs_BT.data<int64_t>()[i], whole.inputs_BT.data<int64_t>()[4 * 8 + i]);
}

TEST_F(Windows, EveryStartOccursAndNoneIsOutside) {
  std::set<int64_t> starts;
  for (int64_t step = 0; step < 50; ++step)
    for (int64_t sample = 0; sample < 20; ++sample)
      starts.insert(window_start(1, step, sample, 92));
  EXPECT_EQ(starts.size(), 92u);
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 91);
  EXPECT_EQ(window_start(1, 0, 0, 1), 0);
}

TEST_F(Windows, OrderedWindowsTileTheSplit) {
  const auto tokens = counting(26);
  EXPECT_EQ(num_ordered_windows(tokens, 8), 3);
  const TokenBatch batch = ordered_windows(tokens, 8, 1, 2);
  EXPECT_EQ(batch.inputs_BT.data<int64_t>()[0], 8);
  EXPECT_EQ(batch.targets_BT.data<int64_t>()[15], 24);
  EXPECT_EQ(num_ordered_windows(counting(25), 8), 3);
  EXPECT_EQ(num_ordered_windows(counting(24), 8), 2);
}

}  // namespace
}  // namespace obelisk
