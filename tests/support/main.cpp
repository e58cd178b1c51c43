// gtest's main, with two things of ours: --max-isa=avx2 caps the kernels, as on a machine
// without AVX-512; and under mpirun MPI is there, and an exception on one rank ends the job, so
// that the others do not wait for it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "ops/common/isa.h"
#include "tests/support/mpi_world.h"

namespace obelisk::parallel {
namespace {

std::optional<MpiSession> session;

class AbortOnException : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    // gtest reports an exception without a file.
    if (!result.failed() || result.file_name() != nullptr) return;
    std::fprintf(stderr, "%s\n", result.message());
    std::fflush(nullptr);
    session->abort(1);
  }
};

}  // namespace

std::unique_ptr<Communicator> test_world() {
  return session ? session->world() : self_communicator();
}

int expected_ranks() {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  return ranks == nullptr ? 1 : std::atoi(ranks);
}

}  // namespace obelisk::parallel

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with("--max-isa="))
      obelisk::ops::limit_isa(std::string_view(argv[i]).substr(10));
  using namespace obelisk::parallel;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    session.emplace(&argc, &argv);
    if (expected_ranks() > 1)
      ::testing::UnitTest::GetInstance()->listeners().Append(new AbortOnException);
  }
  const int status = RUN_ALL_TESTS();
  session.reset();
  return status;
}
