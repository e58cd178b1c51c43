#include "framework/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "framework/autograd/node.h"
#include "framework/graph/tracer.h"

namespace obelisk {

Storage::Storage(std::shared_ptr<Allocator> allocator, Device device, size_t bytes)
    : allocator_(std::move(allocator)),
      device_(device),
      bytes_(bytes),
      data_(allocator_->allocate(bytes)) {}

Storage::~Storage() { allocator_->deallocate(data_, bytes_); }

TensorImpl::TensorImpl(StoragePtr storage_in, int64_t offset_in, Shape shape_in, Strides strides_in,
                       DType dtype_in, Device device_in)
    : storage(std::move(storage_in)),
      offset(offset_in),
      shape(shape_in),
      strides(strides_in),
      dtype(dtype_in),
      device(device_in) {
  // Strides of dims of size one do not matter, nor those of an empty tensor.
  const Strides dense = contiguous_strides(shape);
  contiguous = true;
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] > 1 && strides[i] != dense[i]) contiguous = false;
  if (num_elements(shape) == 0) contiguous = true;
}

TensorImpl::~TensorImpl() = default;

int64_t Tensor::dim(int index) const {
  const int n = num_dims();
  OBELISK_CHECK(index >= -n && index < n, ShapeError,
                "dim: must be in [{}, {}); got {} of shape {}", -n, n, index, to_string(shape()));
  return shape()[index < 0 ? index + n : index];
}

void* Tensor::raw_data() const {
  check_data(dtype());
  return static_cast<std::byte*>(impl_->storage->data()) +
         impl_->offset * static_cast<int64_t>(size_of(dtype()));
}

void Tensor::check_data(DType asked) const {
  OBELISK_CHECK(impl().dtype == asked, Bug, "bug: tensor of dtype {} read as {}",
                to_string(impl().dtype), to_string(asked));
  OBELISK_CHECK(impl().storage != nullptr, Bug, "bug: tensor {} keeps no data",
                to_string(impl().shape));
  OBELISK_CHECK(impl().traced == nullptr, Bug,
                "bug: the values of a traced tensor were asked for; a traced function must not "
                "look at data");
}

DimShape Tensor::dims() const {
  return impl().traced != nullptr ? impl().traced->dims : to_dims(impl().shape);
}

void Tensor::check_numeric() const {
  OBELISK_CHECK(is_numeric(impl().traced->dims), Bug,
                "bug: the shape {} of a traced tensor was used as numbers; ask for dims()",
                to_string(impl().traced->dims));
}

Tensor Tensor::alias(const Shape& shape, const Strides& strides, int64_t offset_elements) const {
  OBELISK_CHECK(impl().traced == nullptr, Bug,
                "bug: alias of a traced tensor, which no graph would know of; use an op");
  return Tensor(new TensorImpl(impl().storage, impl().offset + offset_elements, shape, strides,
                               impl().dtype, impl().device));
}

Tensor Tensor::detach() const {
  Tensor same(
      new TensorImpl(impl().storage, impl().offset, impl().shape, strides(), dtype(), device()));
  same.impl().traced = impl().traced;
  return same;
}

Tensor Tensor::metadata() const {
  Tensor same(new TensorImpl(nullptr, 0, impl().shape, strides(), dtype(), device()));
  same.impl().traced = impl().traced;
  return same;
}

Tensor& Tensor::set_requires_grad(bool value) {
  OBELISK_CHECK(is_leaf(), Bug, "bug: requires_grad is set on leaves only, not on an op's output");
  OBELISK_CHECK(!value || is_float(dtype()), ShapeError,
                "requires_grad: dtype must be a float; got {}", to_string(dtype()));
  impl().requires_grad = value;
  return *this;
}

void Tensor::set_grad(const Tensor& grad) {
  OBELISK_CHECK(!grad.defined() || grad.impl().shape == impl().shape, ShapeError,
                "set_grad: shape must equal the tensor's; got {}, tensor {}",
                to_string(grad.impl().shape), to_string(impl().shape));
  impl().grad = grad.impl_ptr();
}

Tensor empty(const Shape& shape, DType dtype) {
  ExecContext& context = ExecContext::current();
  const size_t bytes = static_cast<size_t>(num_elements(shape)) * size_of(dtype);
  return Tensor(new TensorImpl(new Storage(context.allocator(), context.device(), bytes), 0, shape,
                               contiguous_strides(shape), dtype, context.device()));
}

Tensor zeros(const Shape& shape, DType dtype) {
  Tensor tensor = empty(shape, dtype);
  std::memset(tensor.raw_data(), 0, static_cast<size_t>(tensor.numel()) * size_of(dtype));
  return tensor;
}

Tensor full(const Shape& shape, DType dtype, double value) {
  Tensor tensor = empty(shape, dtype);
  if (dtype == DType::I64) {
    std::fill_n(tensor.data<int64_t>(), tensor.numel(), static_cast<int64_t>(value));
  } else {
    visit_float(dtype, "full", [&]<typename T>() {
      std::fill_n(tensor.data<T>(), tensor.numel(), narrow<T>(static_cast<Compute<T>>(value)));
    });
  }
  return tensor;
}

template <typename T>
Tensor from_values(std::span<const T> values, const Shape& shape) {
  OBELISK_CHECK(static_cast<int64_t>(values.size()) == num_elements(shape), ShapeError,
                "from_values: number of values must match the shape; got {} for {}", values.size(),
                to_string(shape));
  Tensor tensor = empty(shape, DTypeOf<T>::value);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}
template Tensor from_values<double>(std::span<const double>, const Shape&);
template Tensor from_values<float>(std::span<const float>, const Shape&);
template Tensor from_values<int64_t>(std::span<const int64_t>, const Shape&);
template Tensor from_values<int32_t>(std::span<const int32_t>, const Shape&);
template Tensor from_values<uint8_t>(std::span<const uint8_t>, const Shape&);

std::string describe(std::string_view name, const Tensor& tensor) {
  if (!tensor.defined()) return fmt::format("{} absent", name);
  return fmt::format("{} {} {}", name, to_string(tensor.dtype()), to_string(tensor.dims()));
}

}  // namespace obelisk
