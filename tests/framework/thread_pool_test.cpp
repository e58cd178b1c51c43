#include "framework/tensor/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace obelisk {
namespace {

TEST(ThreadPoolTest, RunsEachPartOnceForAnyNumberOfPartsAndThreads) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 2000; ++round) {
      const int parts = round % 9;
      std::array<std::atomic<int>, 9> calls{};
      ASSERT_TRUE(pool.run(parts, [&](int part, int) { calls[part].fetch_add(1); }));
      for (int part = 0; part < 9; ++part) ASSERT_EQ(calls[part].load(), part < parts ? 1 : 0);
    }
  }
}

TEST(ThreadPoolTest, WritesOfEveryPartAreSeenAfterwards) {
  ThreadPool pool(3);
  std::array<int, 6> values{};  // not atomic: run() orders them
  for (int round = 1; round <= 5000; ++round) {
    ASSERT_TRUE(pool.run(6, [&](int part, int) { values[part] += part; }));
    for (int part = 0; part < 6; ++part) ASSERT_EQ(values[part], round * part);
  }
}

// One of two parts blocks until the other has run: the caller, or the one worker, is free for it.
TEST(ThreadPoolTest, PartsRunAtTheSameTime) {
  ThreadPool pool(2);
  std::atomic<int> arrived = 0;
  ASSERT_TRUE(pool.run(2, [&](int, int) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
  }));
  EXPECT_EQ(arrived.load(), 2);
}

// A worker is kept in one part; all the others are done without it.
TEST(ThreadPoolTest, NobodyWaitsForAThreadThatHasNotClaimed) {
  ThreadPool pool(2);
  std::atomic<int> done = 0;
  ASSERT_TRUE(pool.run(8, [&](int part, int) {
    if (part == 0)
      while (done.load() < 7) std::this_thread::yield();
    else
      ++done;
  }));
  EXPECT_EQ(done.load(), 7);
}

// What a thread keeps for itself needs no lock.
TEST(ThreadPoolTest, EachThreadHasItsNumber) {
  ThreadPool pool(3);
  std::array<int, 3> parts{};  // not atomic
  for (int round = 0; round < 1000; ++round)
    ASSERT_TRUE(pool.run(7, [&](int, int thread) { ++parts.at(static_cast<size_t>(thread)); }));
  EXPECT_EQ(parts[0] + parts[1] + parts[2], 7000);
}

TEST(ThreadPoolTest, RefusesACallFromInside) {
  ThreadPool pool(2);
  std::atomic<int> refused = 0;
  ASSERT_TRUE(pool.run(2, [&](int, int) { refused += pool.run(2, [](int, int) {}) ? 0 : 1; }));
  EXPECT_EQ(refused.load(), 2);
}

}  // namespace
}  // namespace obelisk
