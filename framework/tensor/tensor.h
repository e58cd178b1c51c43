// Tensor: a handle on a TensorImpl, which is metadata fixed at construction over a share of a
// Storage.
//
// Copying a Tensor copies the handle. Views share storage. A tensor is row-major and contiguous
// unless an op's contract says otherwise. Autograd state lives inside; only leaves (tensors that no
// op made) can be marked as requiring gradients.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <memory>
#include <span>

#include "framework/base/pooled.h"
#include "framework/base/small_vector.h"
#include "framework/op/dim.h"
#include "framework/tensor/context.h"
#include "framework/tensor/device.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace obelisk {

class Node;
class Tensor;
struct TracedValue;
void intrusive_ptr_add_ref(const TracedValue* value);
void intrusive_ptr_release(const TracedValue* value);

// Bytes on one device, never resized. The version counts writes in place, so that a tensor saved
// for backward and changed since is an error that names both ops.
class Storage : public boost::intrusive_ref_counter<Storage>, public Pooled<Storage> {
 public:
  Storage(std::shared_ptr<Allocator> allocator, Device device, size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  const Device& device() const { return device_; }

  uint32_t version() const { return version_; }
  const char* last_writer() const {
    return last_writer_;
  }  // an op's name; null before the first write in place
  void mark_written(const char* op) {
    ++version_;
    last_writer_ = op;
  }

 private:
  std::shared_ptr<Allocator> allocator_;
  Device device_;
  size_t bytes_;
  void* data_;
  uint32_t version_ = 0;
  const char* last_writer_ = nullptr;
};
using StoragePtr = boost::intrusive_ptr<Storage>;

struct TensorImpl : boost::intrusive_ref_counter<TensorImpl>, Pooled<TensorImpl> {
  TensorImpl(StoragePtr storage, int64_t offset, Shape shape, Strides strides, DType dtype,
             Device device);
  ~TensorImpl();

  StoragePtr storage;  // null: shape and dtype only
  int64_t offset;      // in elements
  Shape shape;
  Strides strides;  // in elements
  DType dtype;
  Device device;
  bool contiguous;

  bool requires_grad = false;
  int output_index = 0;                   // which output of grad_fn this is
  boost::intrusive_ptr<Node> grad_fn;     // null: a leaf
  boost::intrusive_ptr<TensorImpl> grad;  // leaves only

  // Null but for a value of a graph that is being traced (framework/graph). Its dims are there, and
  // may be symbolic: `shape` and `strides` then hold an example.
  boost::intrusive_ptr<const TracedValue> traced;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(boost::intrusive_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  // Throws Bug for a traced tensor with a symbolic dim: where one size flows into another shape,
  // code asks for dims().
  const Shape& shape() const {
    if (impl().traced != nullptr) [[unlikely]]
      check_numeric();
    return impl_->shape;
  }
  const Strides& strides() const { return impl().strides; }
  // The shape, with symbols where a traced tensor has them.
  DimShape dims() const;
  int num_dims() const { return impl().shape.size(); }
  // Size of a dim; negative counts from the end.
  int64_t dim(int index) const;
  int64_t numel() const { return num_elements(shape()); }
  DType dtype() const { return impl().dtype; }
  const Device& device() const { return impl().device; }
  bool is_contiguous() const { return impl().contiguous; }
  // False for a tensor that kept only shape and dtype, as autograd does for inputs whose values it
  // does not need.
  bool has_data() const { return impl().storage != nullptr; }

  // First element. Throws Bug when T is not the dtype or the bytes are not on the host.
  template <typename T>
  T* data() const {
    check_data(DTypeOf<T>::value);
    return static_cast<T*>(impl_->storage->data()) + impl_->offset;
  }
  void* raw_data() const;
  // The only element of a tensor with one.
  template <typename T>
  T item() const {
    OBELISK_CHECK(numel() == 1, ShapeError, "item: tensor must have one element; got {}",
                  to_string(shape()));
    return *data<T>();
  }

  // Another view of the same bytes, outside autograd.
  Tensor alias(const Shape& shape, const Strides& strides, int64_t offset_elements) const;
  // The same bytes without autograd state.
  Tensor detach() const;
  // Shape and dtype without bytes.
  Tensor metadata() const;

  bool requires_grad() const { return impl().requires_grad; }
  bool is_leaf() const { return impl().grad_fn == nullptr; }
  // Throws for a tensor that an op made, and for non-float dtypes.
  Tensor& set_requires_grad(bool value);
  // Where gradients of this leaf are added. A defined one is accumulated into; an undefined one is
  // set by backward.
  Tensor grad() const { return Tensor(impl().grad); }
  void set_grad(const Tensor& grad);

  StoragePtr storage() const { return impl().storage; }
  TensorImpl& impl() const {
    OBELISK_CHECK(impl_ != nullptr, Bug, "bug: an undefined tensor was used");
    return *impl_;
  }
  const boost::intrusive_ptr<TensorImpl>& impl_ptr() const { return impl_; }

 private:
  void check_data(DType asked) const;
  void check_numeric() const;
  boost::intrusive_ptr<TensorImpl> impl_;
};

// Inline room for the lists of nearly every op; longer ones spill to the heap.
using TensorList = SmallVector<Tensor, 6>;

// New tensors on the current context's device. Contents of empty() are undefined.
Tensor empty(const Shape& shape, DType dtype);
Tensor zeros(const Shape& shape, DType dtype);
Tensor full(const Shape& shape, DType dtype, double value);
template <typename T>
Tensor from_values(std::span<const T> values, const Shape& shape);

// "x f32 [2, 3]", for messages.
std::string describe(std::string_view name, const Tensor& tensor);

}  // namespace obelisk
