#include <cstring>

#include "parallel/comm/communicator.h"

namespace obelisk::parallel {
namespace {

// A group of one: every collective is the identity.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(const Tensor&, ReduceKind) override {}
  void broadcast(const Tensor&, int root) override {
    OBELISK_CHECK(root == 0, CommError, "broadcast: root must be in [0, 1); got {}", root);
  }
  void all_gather(const Tensor& part, const Tensor& gathered) override {
    OBELISK_CHECK(gathered.numel() == part.numel() && gathered.dtype() == part.dtype(), CommError,
                  "all_gather: gathered must hold 1 part; got {}, {}", describe("part", part),
                  describe("gathered", gathered));
    std::memcpy(gathered.raw_data(), part.raw_data(),
                static_cast<size_t>(part.numel()) * size_of(part.dtype()));
  }
  void barrier() override {}
  std::unique_ptr<Communicator> split(int, int) override { return self_communicator(); }
};

}  // namespace

std::unique_ptr<Communicator> self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace obelisk::parallel
