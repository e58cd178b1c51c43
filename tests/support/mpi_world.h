// MPI in a test binary: initialised once, by main, when the tests run under mpirun.
#pragma once

#include <memory>

#include "parallel/comm/communicator.h"

namespace obelisk::parallel {

// The world communicator. A test that throws on one rank would leave the others waiting: the
// listener that main installs aborts the whole job at the first failure of such a kind.
std::unique_ptr<Communicator> test_world();

// What mpirun's -n was, from its environment; a test compares it with the size it sees.
int expected_ranks();

}  // namespace obelisk::parallel
