#include "framework/data/text_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "framework/base/log.h"
#include "framework/tensor/philox.h"

namespace obelisk {
namespace {

// Appends the file's bytes to `text`; 0, or errno. Streams would throw from inside instead.
int read_all(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char buffer[1 << 16];
  ssize_t count = 0;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0)
    text.append(buffer, static_cast<size_t>(count));
  const int error = count < 0 ? errno : 0;
  close(fd);
  return error;
}

void check_characters(const std::string& path, std::string& text) {
  const size_t zero = text.find('\0');
  OBELISK_CHECK(zero == std::string::npos, IoError,
                "data.path: the file must be text; got '{}' with a zero byte at offset {}; give a "
                "text file, or set tokenizer.kind: byte to train on bytes",
                path, zero);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (text.find("\r\n") != std::string::npos)
    log::warn(
        "data.path: lines of '{}' end in CR LF, and the carriage returns are trained on; "
        "convert the file to LF if that is not wanted",
        path);
}

}  // namespace

std::string read_text_file(const std::string& path, TextKind kind) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  OBELISK_CHECK(
      std::filesystem::exists(status), IoError,
      "data.path: the file must exist; got '{}'; set data.path to a text file, relative to "
      "the working directory",
      path);
  OBELISK_CHECK(!std::filesystem::is_directory(status), IoError,
                "data.path: must be a text file; got the folder '{}'; name a file in it", path);
  // A pipe or a device may block or never end.
  OBELISK_CHECK(std::filesystem::is_regular_file(status), IoError,
                "data.path: must be a regular file; got '{}', a pipe, socket or device; copy its "
                "text into a file",
                path);
  std::string text;
  const int status_code = read_all(path, text);
  OBELISK_CHECK(
      status_code == 0, IoError,
      "data.path: the file must be readable; got '{}': {}; check its permissions and disk", path,
      std::strerror(status_code));
  OBELISK_CHECK(!text.empty(), IoError,
                "data.path: the file must hold text; got '{}' with 0 bytes; give another file",
                path);
  if (kind == TextKind::Text) check_characters(path, text);
  return text;
}

TextData split_text(const Tokenizer& tokenizer, std::string_view text, double validation_fraction,
                    int64_t sequence_length, const std::string& path) {
  std::vector<int32_t> tokens = tokenizer.encode(text);
  const auto num_train = static_cast<int64_t>(
      std::floor(static_cast<double>(tokens.size()) * (1.0 - validation_fraction) + 1e-9));
  TextData data;
  data.validation.assign(tokens.begin() + num_train, tokens.end());
  tokens.resize(static_cast<size_t>(num_train));
  data.train = std::move(tokens);
  for (const auto& [name, split] :
       {std::pair{"training", &data.train}, std::pair{"validation", &data.validation}})
    OBELISK_CHECK(static_cast<int64_t>(split->size()) > sequence_length, ValueError,
                  "data.path: the {} split must hold at least {} tokens, one sequence and its last "
                  "target; got {} from '{}' with data.validation_fraction {}; give a longer text, "
                  "lower batch.sequence_length, or change data.validation_fraction",
                  name, sequence_length + 1, split->size(), path, validation_fraction);
  return data;
}

int64_t window_start(uint64_t seed, int64_t step, int64_t sample, int64_t num_windows) {
  const Philox random(seed, random_stream("data", "window"), static_cast<uint64_t>(step));
  const PhiloxBlock block = random.block(static_cast<uint64_t>(sample));
  const uint64_t bits = uint64_t{block[1]} << 32 | block[0];
  // The high word of a 64 x 64 bit product maps 64 random bits onto [0, num_windows).
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>(static_cast<Wide>(bits) * static_cast<uint64_t>(num_windows) >> 64);
}

namespace {

void copy_window(std::span<const int32_t> tokens, int64_t start, int64_t row, int64_t length,
                 const TokenBatch& batch) {
  int64_t* inputs = batch.inputs_BT.data<int64_t>() + row * length;
  int64_t* targets = batch.targets_BT.data<int64_t>() + row * length;
  const int32_t* source = tokens.data() + start;
  for (int64_t t = 0; t < length; ++t) {
    inputs[t] = source[t];
    targets[t] = source[t + 1];
  }
}

TokenBatch empty_batch(int64_t count, int64_t length) {
  return {empty({count, length}, DType::I64), empty({count, length}, DType::I64)};
}

}  // namespace

TokenBatch random_windows(std::span<const int32_t> tokens, int64_t sequence_length, uint64_t seed,
                          int64_t step, int64_t first, int64_t count) {
  const int64_t num_windows = static_cast<int64_t>(tokens.size()) - sequence_length;
  OBELISK_ASSERT(num_windows > 0);
  TokenBatch batch = empty_batch(count, sequence_length);
  for (int64_t row = 0; row < count; ++row)
    copy_window(tokens, window_start(seed, step, first + row, num_windows), row, sequence_length,
                batch);
  return batch;
}

int64_t num_ordered_windows(std::span<const int32_t> tokens, int64_t sequence_length) {
  return (static_cast<int64_t>(tokens.size()) - 1) / sequence_length;
}

TokenBatch ordered_windows(std::span<const int32_t> tokens, int64_t sequence_length, int64_t first,
                           int64_t count) {
  OBELISK_ASSERT(first >= 0 && first + count <= num_ordered_windows(tokens, sequence_length));
  TokenBatch batch = empty_batch(count, sequence_length);
  for (int64_t row = 0; row < count; ++row)
    copy_window(tokens, (first + row) * sequence_length, row, sequence_length, batch);
  return batch;
}

}  // namespace obelisk
