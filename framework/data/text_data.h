// Text as training data: a file read whole, cut into a training and a validation split, and the two
// ways to read a split.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"
#include "framework/tokenizer/tokenizer.h"

namespace obelisk {

// Text: characters; a zero byte is refused, a UTF-8 byte order mark is skipped, and line ends of
// CR LF are warned about, since the model would learn them. Bytes: anything, as it is.
enum class TextKind { Text, Bytes };

// The contents of a file. Throws IoError with the remedy: missing, a folder, a pipe or device,
// unreadable, empty, or binary where text is wanted.
std::string read_text_file(const std::string& path, TextKind kind = TextKind::Text);

// Tokens of one text. The last `validation_fraction` of the characters is held out.
struct TextData {
  std::vector<int32_t> train;
  std::vector<int32_t> validation;
};
// Throws ValueError when a split is shorter than one sequence and its last target; `path` is for
// the message.
TextData split_text(const Tokenizer& tokenizer, std::string_view text, double validation_fraction,
                    int64_t sequence_length, const std::string& path);

// inputs and targets, both I64 [sequences, sequence_length]; target t is the token after input t.
struct TokenBatch {
  Tensor inputs_BT;
  Tensor targets_BT;
  // Tokens that count: everything here, since no text is masked.
  int64_t num_targets() const { return targets_BT.numel(); }
};

// Where sequence `sample` of step `step` begins: uniform over all windows, with replacement. A
// function of its arguments alone, so every mesh and every micro-batch size reads the same text.
int64_t window_start(uint64_t seed, int64_t step, int64_t sample, int64_t num_windows);

// Sequences [first, first + count) of a step.
TokenBatch random_windows(std::span<const int32_t> tokens, int64_t sequence_length, uint64_t seed,
                          int64_t step, int64_t first, int64_t count);

// Non-overlapping windows of a split, in order: how many there are, and windows [first, first +
// count).
int64_t num_ordered_windows(std::span<const int32_t> tokens, int64_t sequence_length);
TokenBatch ordered_windows(std::span<const int32_t> tokens, int64_t sequence_length, int64_t first,
                           int64_t count);

}  // namespace obelisk
