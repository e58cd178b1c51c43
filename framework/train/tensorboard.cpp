#include "framework/train/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>

#include "framework/base/machine.h"

namespace obelisk {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

// TFRecord stores checksums rotated and shifted, so that a checksum of data that holds checksums
// stays a good one.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

template <typename T>
void append_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

// Protobuf's wire format.
enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, uint32_t field, Wire wire) {
  append_varint(out, field << 3 | wire);
}

void append_bytes_field(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string file_name() {
  return fmt::format("events.out.tfevents.{}.{}.{}", static_cast<int64_t>(wall_time()),
                     machine_info().hostname, ::getpid());
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

TensorBoardFile::TensorBoardFile(const std::string& folder)
    : file_("tensorboard", folder + "/" + file_name(), OutputFile::Mode::Replace) {
  for (std::string* buffer : {&event_, &summary_, &record_}) buffer->reserve(1024);
  begin_event(0);
  append_bytes_field(event_, 3, "brain.Event:2");  // what readers look for
  end_event();
}

void TensorBoardFile::begin_event(int64_t step) {
  event_.clear();
  summary_.clear();
  append_key(event_, 1, kFixed64);
  append_little_endian(event_, std::bit_cast<uint64_t>(wall_time()));
  if (step == 0) return;
  append_key(event_, 2, kVarint);
  append_varint(event_, static_cast<uint64_t>(step));
}

void TensorBoardFile::scalar(std::string_view tag, double value) {
  // Value: key and length of the tag take 2 bytes (tags are short), key and float 5.
  append_key(summary_, 1, kBytes);
  append_varint(summary_, 2 + tag.size() + 5);
  append_bytes_field(summary_, 1, tag);
  append_key(summary_, 2, kFixed32);
  append_little_endian(summary_, std::bit_cast<uint32_t>(static_cast<float>(value)));
}

void TensorBoardFile::end_event() {
  if (!summary_.empty()) append_bytes_field(event_, 5, summary_);
  record_.clear();
  append_little_endian(record_, uint64_t{event_.size()});
  append_little_endian(record_, masked_crc(record_));
  record_ += event_;
  append_little_endian(record_, masked_crc(event_));
  file_.write(record_);
}

void TensorBoardFile::step(const StepRecord& record) {
  constexpr double kMiB = 1024.0 * 1024.0;
  begin_event(record.step);
  scalar("loss/train", record.loss);
  scalar("optimizer/learning_rate", record.learning_rate);
  scalar("optimizer/gradient_norm", record.gradient_norm);
  if (record.seconds > 0) scalar("speed/tokens_per_second", record.tokens / record.seconds);
  scalar("memory/peak_mib", static_cast<double>(record.memory_bytes) / kMiB);
  end_event();
}

void TensorBoardFile::validation(const ValidationRecord& record) {
  begin_event(record.step);
  scalar("loss/validation", record.loss);
  end_event();
}

}  // namespace obelisk
