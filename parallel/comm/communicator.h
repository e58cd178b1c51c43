// Communicator: a group of ranks, and the collectives they call together. Back ends: self (one
// rank) and MPI (CPU tensors).
//
// Every rank of the group calls the same collective in the same order with the same shape and
// dtype. Tensors are contiguous. A sum over ranks is deterministic: the same group and operands
// give the same bits.
#pragma once

#include <memory>
#include <string_view>

#include "framework/tensor/tensor.h"

namespace obelisk::parallel {

enum class ReduceKind { Sum, Max, Min };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place; f32, f64, i64 and i32. Throws CommError for another dtype.
  virtual void all_reduce(const Tensor& tensor, ReduceKind kind = ReduceKind::Sum) = 0;
  // The root's values to everyone, in place; any dtype.
  virtual void broadcast(const Tensor& tensor, int root) = 0;
  // `gathered` is [size, ...part's shape]: slice r holds rank r's part; any dtype.
  virtual void all_gather(const Tensor& part, const Tensor& gathered) = 0;
  virtual void barrier() = 0;

  // Ranks with the same color form a group, ordered by key. Called by every rank.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
};

std::unique_ptr<Communicator> self_communicator();

// MPI for the life of this object: initialised with MPI_THREAD_MULTIPLE, finalised at the end. One
// a process.
class MpiSession {
 public:
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  std::unique_ptr<Communicator> world() const;
  // Ranks of this job on this machine.
  int ranks_on_node() const;
  // Ends every rank of the job at once.
  [[noreturn]] void abort(int exit_code) const;
};

// "Open MPI v4.1.4", for the log.
std::string mpi_version();

}  // namespace obelisk::parallel
