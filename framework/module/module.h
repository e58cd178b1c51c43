// Module and Parameter: names, not behaviour. Each layer has a typed forward of its own; what
// modules share is the tree of paths ("layers.3.attn.qkv.weight") that checkpoints, optimizer
// groups, random streams and errors all speak.
#pragma once

#include <string>
#include <vector>

#include "framework/base/scope.h"
#include "framework/tensor/tensor.h"

namespace obelisk {

// What a parameter starts as. Normals are drawn from the counter RNG, stream (path, "init"),
// element index.
struct Initial {
  enum class Kind { Zeros, Ones, Normal } kind = Kind::Zeros;
  double std = 0.0;  // Normal

  static Initial zeros() { return {Kind::Zeros, 0.0}; }
  static Initial ones() { return {Kind::Ones, 0.0}; }
  static Initial normal(double std) { return {Kind::Normal, std}; }
};

class Module;

// A trainable tensor. Declaring one takes no memory: FlatParameters lays all of them out at once
// and sets `value`, whose gradient buffer is a view of the flat gradient.
class Parameter {
 public:
  Parameter(Module& owner, std::string_view name, Shape shape, Initial initial);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& path() const { return path_; }
  const Shape& shape() const { return shape_; }
  const Initial& initial() const { return initial_; }
  int64_t numel() const { return num_elements(shape_); }
  // Weight decay is for matrices and embeddings, not for biases and norm gains.
  bool decays() const { return shape_.size() >= 2; }

  const Tensor& value() const { return value_; }
  void set_value(Tensor value) { value_ = std::move(value); }

 private:
  std::string path_;
  Shape shape_;
  Initial initial_;
  Tensor value_;
};

class Module {
 public:
  explicit Module(std::string path) : path_(std::move(path)) {}
  Module(Module& parent, std::string_view name);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }
  // "path.name"; just "name" below a root with an empty path.
  std::string child_path(std::string_view name) const;
  // Own parameters and those of all children, in order of declaration.
  std::vector<Parameter*> parameters() const;

 private:
  friend class Parameter;
  struct Entry {
    Parameter* parameter;  // one of the two is null
    Module* child;
  };
  std::string path_;
  std::vector<Entry> entries_;
};

}  // namespace obelisk
