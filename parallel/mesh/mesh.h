// The mesh: how ranks are arranged. It has one axis, dp (data parallel): every rank holds the whole
// model and a share of the batch. A single process is a mesh of size one; there is no other code
// path for it.
//
// An axis is a mesh axis, a dim a tensor dimension; messages and code keep to that.
#pragma once

#include <memory>

#include "parallel/comm/communicator.h"

namespace obelisk::parallel {

// Pure arithmetic, tested for every rank without MPI.
struct MeshLayout {
  int dp = 1;
  int num_ranks() const { return dp; }
  int dp_coordinate(int rank) const { return rank % dp; }
};

// A layout with communicators; passed explicitly, there is no global one.
class ProcessMesh {
 public:
  // Throws CommError when the product of the axes is not the number of ranks.
  ProcessMesh(MeshLayout layout, std::unique_ptr<Communicator> world);

  const MeshLayout& layout() const { return layout_; }
  Communicator& world() const { return *world_; }
  Communicator& dp() const { return *dp_; }
  int rank() const { return world_->rank(); }

 private:
  MeshLayout layout_;
  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> dp_;
};

}  // namespace obelisk::parallel
