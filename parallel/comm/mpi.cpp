#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "parallel/comm/communicator.h"

namespace obelisk::parallel {
namespace {

// MPI counts are ints; longer buffers go in pieces of this many elements.
constexpr int64_t kMaxCount = int64_t{1} << 30;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  raise<CommError>("{}: MPI must succeed; got '{}'; see the messages of mpirun", call,
                   std::string(text, static_cast<size_t>(length)));
}

MPI_Datatype datatype(DType dtype, const char* call) {
  switch (dtype) {
    case DType::F64:
      return MPI_DOUBLE;
    case DType::F32:
      return MPI_FLOAT;
    case DType::I64:
      return MPI_INT64_T;
    case DType::I32:
      return MPI_INT32_T;
    default:
      raise<CommError>("{}: dtype must be f32, f64, i64 or i32; got {}; cast first", call,
                       to_string(dtype));
  }
}

MPI_Op operation(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum:
      return MPI_SUM;
    case ReduceKind::Max:
      return MPI_MAX;
    case ReduceKind::Min:
      return MPI_MIN;
  }
  return MPI_SUM;
}

class MpiCommunicator final : public Communicator {
 public:
  // Owns `comm` unless it is MPI_COMM_WORLD.
  explicit MpiCommunicator(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(comm_, &rank_), "comm_rank");
    check(MPI_Comm_size(comm_, &size_), "comm_size");
  }
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (comm_ != MPI_COMM_WORLD && finalized == 0) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(const Tensor& tensor, ReduceKind kind) override {
    const MPI_Datatype type = datatype(tensor.dtype(), "all_reduce");
    for_pieces(tensor, [&](std::byte* data, int64_t count) {
      check(
          MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), type, operation(kind), comm_),
          "all_reduce");
    });
    tensor.storage()->mark_written("all_reduce");
  }

  void broadcast(const Tensor& tensor, int root) override {
    OBELISK_CHECK(root >= 0 && root < size_, CommError,
                  "broadcast: root must be in [0, {}); got {}", size_, root);
    const auto width = static_cast<int64_t>(size_of(tensor.dtype()));
    for_pieces(tensor, [&](std::byte* data, int64_t count) {
      // In bytes, so that any dtype goes; pieces are short enough for that.
      for (int64_t done = 0; done < count * width; done += kMaxCount)
        check(MPI_Bcast(data + done, static_cast<int>(std::min(kMaxCount, count * width - done)),
                        MPI_BYTE, root, comm_),
              "broadcast");
    });
    tensor.storage()->mark_written("broadcast");
  }

  void all_gather(const Tensor& part, const Tensor& gathered) override {
    OBELISK_CHECK(gathered.numel() == size_ * part.numel() && gathered.dtype() == part.dtype(),
                  CommError, "all_gather: gathered must hold {} parts; got {}, {}", size_,
                  describe("part", part), describe("gathered", gathered));
    const int64_t bytes = part.numel() * static_cast<int64_t>(size_of(part.dtype()));
    OBELISK_CHECK(bytes <= kMaxCount, CommError,
                  "all_gather: a part must be at most {} bytes; got {}", kMaxCount, bytes);
    check(MPI_Allgather(part.raw_data(), static_cast<int>(bytes), MPI_BYTE, gathered.raw_data(),
                        static_cast<int>(bytes), MPI_BYTE, comm_),
          "all_gather");
    gathered.storage()->mark_written("all_gather");
  }

  void barrier() override { check(MPI_Barrier(comm_), "barrier"); }

  std::unique_ptr<Communicator> split(int color, int key) override {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color, key, &part), "split");
    return std::make_unique<MpiCommunicator>(part);
  }

 private:
  template <typename F>
  static void for_pieces(const Tensor& tensor, F&& f) {
    OBELISK_ASSERT(tensor.is_contiguous());
    auto* data = static_cast<std::byte*>(tensor.raw_data());
    const auto width = static_cast<int64_t>(size_of(tensor.dtype()));
    for (int64_t begin = 0; begin < tensor.numel(); begin += kMaxCount)
      f(data + begin * width, std::min(kMaxCount, tensor.numel() - begin));
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  int provided = 0;
  check(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "mpi_init");
  OBELISK_CHECK(provided == MPI_THREAD_MULTIPLE, CommError,
                "mpi_init: MPI must offer MPI_THREAD_MULTIPLE; got level {}; install an MPI built "
                "with thread support",
                provided);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

std::unique_ptr<Communicator> MpiSession::world() const {
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
}

int MpiSession::ranks_on_node() const {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
        "ranks_on_node");
  int size = 1;
  MPI_Comm_size(node, &size);
  MPI_Comm_free(&node);
  return size;
}

void MpiSession::abort(int exit_code) const {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string full(text, static_cast<size_t>(length));
  return full.substr(0, full.find(','));
}

}  // namespace obelisk::parallel
