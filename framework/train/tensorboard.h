// Scalars for TensorBoard: `tensorboard --logdir runs` finds the file in the run folder.
//
// The file is a list of records, each framed as TensorFlow's TFRecord:
//
//     u64 length, u32 masked CRC-32C of the length, the bytes, u32 masked CRC-32C of the bytes
//
// little-endian; a record is a protobuf message Event {1: double wall_time, 2: int64 step,
// 3: string file_version, 5: Summary {1: Value {1: string tag, 2: float simple_value}...}}. It is
// encoded here by hand, since a step must not allocate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/output_file.h"
#include "framework/train/events.h"

namespace obelisk {

// CRC-32C (Castagnoli), reflected, as in RFC 3720 appendix B.4.
uint32_t crc32c(std::string_view bytes);

class TensorBoardFile {
 public:
  // In this folder: events.out.tfevents.<seconds>.<host>.<pid>. Throws IoError.
  explicit TensorBoardFile(const std::string& folder);

  // Tags loss/train, loss/validation, optimizer/learning_rate, optimizer/gradient_norm,
  // speed/tokens_per_second, memory/peak_mib. Throws IoError.
  void step(const StepRecord& record);
  void validation(const ValidationRecord& record);

  const std::string& path() const { return file_.path(); }

 private:
  void begin_event(int64_t step);
  void scalar(std::string_view tag, double value);
  void end_event();

  OutputFile file_;
  std::string event_, summary_, record_;  // reused
};

}  // namespace obelisk
