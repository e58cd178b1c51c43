#include "framework/train/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <map>

#include "framework/base/error.h"
#include "tests/support/expect_error.h"
#include "tests/train/temp_folder.h"

namespace obelisk {
namespace {

// RFC 3720, appendix B.4.
TEST(TensorBoard, Crc32cMatchesThePublishedVectors) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

// A reader of its own, written from the two formats.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  template <typename T>
  T fixed() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<uint8_t>(bytes_[i])) << (8 * i);
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::string_view take(size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view bytes_;
};

uint32_t unmasked(uint32_t masked) { return std::rotl(masked - 0xA282EAD8u, 15); }

struct Event {
  int64_t step = 0;
  double wall_time = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

void read_value(std::string_view bytes, Event& event) {
  Reader reader(bytes);
  EXPECT_EQ(reader.varint(), 1u << 3 | 2u);
  const std::string tag(reader.take(reader.varint()));
  EXPECT_EQ(reader.varint(), 2u << 3 | 5u);
  event.scalars[tag] = std::bit_cast<float>(reader.fixed<uint32_t>());
  EXPECT_TRUE(reader.done());
}

Event read_event(std::string_view bytes) {
  Event event;
  for (Reader reader(bytes); !reader.done();) {
    const uint64_t key = reader.varint();
    if (key == (1u << 3 | 1u)) {
      event.wall_time = std::bit_cast<double>(reader.fixed<uint64_t>());
    } else if (key == (2u << 3 | 0u)) {
      event.step = static_cast<int64_t>(reader.varint());
    } else if (key == (3u << 3 | 2u)) {
      event.version = reader.take(reader.varint());
    } else {
      EXPECT_EQ(key, 5u << 3 | 2u);
      for (Reader summary(reader.take(reader.varint())); !summary.done();) {
        EXPECT_EQ(summary.varint(), 1u << 3 | 2u);
        read_value(summary.take(summary.varint()), event);
      }
    }
  }
  return event;
}

std::vector<Event> read_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<Event> events;
  size_t at = 0;
  for (Reader reader(bytes); !reader.done();) {
    const auto length = reader.fixed<uint64_t>();
    EXPECT_EQ(unmasked(reader.fixed<uint32_t>()), crc32c(std::string_view(bytes).substr(at, 8)));
    const std::string_view event = reader.take(length);
    EXPECT_EQ(unmasked(reader.fixed<uint32_t>()), crc32c(event));
    events.push_back(read_event(event));
    at += 8 + 4 + length + 4;
  }
  return events;
}

TEST(TensorBoard, RecordsReadBack) {
  const TempFolder temp;
  TensorBoardFile file(temp.path());
  EXPECT_THAT(file.path(), ::testing::HasSubstr("/events.out.tfevents."));
  StepRecord record;
  record.step = 300;
  record.loss = 2.5;
  record.learning_rate = 1e-3;
  record.gradient_norm = 0.75;
  record.seconds = 0.5;
  record.tokens = 1024;
  record.memory_bytes = 3 << 20;
  file.step(record);
  ValidationRecord validation;
  validation.step = 1 << 20;
  validation.loss = 1.25;
  file.validation(validation);
  const std::vector<Event> events = read_events(file.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_EQ(events[1].step, 300);
  EXPECT_EQ(events[1].scalars, (std::map<std::string, float>{{"loss/train", 2.5f},
                                                             {"optimizer/learning_rate", 1e-3f},
                                                             {"optimizer/gradient_norm", 0.75f},
                                                             {"speed/tokens_per_second", 2048.0f},
                                                             {"memory/peak_mib", 3.0f}}));
  EXPECT_EQ(events[2].step, 1 << 20);
  EXPECT_EQ(events[2].scalars, (std::map<std::string, float>{{"loss/validation", 1.25f}}));
}

TEST(TensorBoard, SaysWhenItCannotBeWritten) {
  try {
    TensorBoardFile("/no/such/folder");
    FAIL() << "it was opened";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                ::testing::StartsWith("tensorboard: '/no/such/folder/events.out.tfevents."));
  }
}

}  // namespace
}  // namespace obelisk
