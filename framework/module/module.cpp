#include "framework/module/module.h"

namespace obelisk {

Parameter::Parameter(Module& owner, std::string_view name, Shape shape, Initial initial)
    : path_(owner.child_path(name)), shape_(shape), initial_(initial) {
  owner.entries_.push_back({this, nullptr});
}

Module::Module(Module& parent, std::string_view name) : path_(parent.child_path(name)) {
  parent.entries_.push_back({nullptr, this});
}

std::string Module::child_path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

std::vector<Parameter*> Module::parameters() const {
  std::vector<Parameter*> list;
  for (const Entry& entry : entries_) {
    if (entry.parameter != nullptr) {
      list.push_back(entry.parameter);
    } else {
      for (Parameter* parameter : entry.child->parameters()) list.push_back(parameter);
    }
  }
  return list;
}

}  // namespace obelisk
