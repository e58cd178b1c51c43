#include "parallel/mesh/mesh.h"

namespace obelisk::parallel {

ProcessMesh::ProcessMesh(MeshLayout layout, std::unique_ptr<Communicator> world)
    : layout_(layout), world_(std::move(world)) {
  OBELISK_CHECK(layout_.num_ranks() == world_->size(), CommError,
                "mesh: dp {} is {} ranks, {} were started; set mesh.dp: {} or use -n {}",
                layout_.dp, layout_.num_ranks(), world_->size(), world_->size(),
                layout_.num_ranks());
  dp_ = world_->split(0, world_->rank());
}

}  // namespace obelisk::parallel
