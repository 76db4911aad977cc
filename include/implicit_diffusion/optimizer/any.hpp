// One of the built-in optimizers, chosen by its name.
#pragma once

#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/memory.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace implicit_diffusion {

// Each of the list has a name and options with the schedule of its rate.
template <class Theta, class... Named>
class NamedOptimizer {
 public:
  NamedOptimizer() = default;  // leaves theta where it is

  // The names, in the order of the list.
  static std::vector<std::string> names() { return {Named::name...}; }
  // The one of that name; where there is none, it leaves theta where it is.
  static NamedOptimizer make(std::string_view name, const Schedule& rate) {
    NamedOptimizer made;
    ((name == Named::name ? void(made.choice_ = Named({.rate = rate})) : void()), ...);
    return made;
  }

  void update(Theta& theta, const Theta& gradient, std::int64_t step) {
    std::visit([&](auto& o) { o.update(theta, gradient, step); }, choice_);
  }

  // Of one that remembers nothing it is empty.
  const OptimizerMemory<Theta>& memory() const { return const_cast<NamedOptimizer*>(this)->memory(); }
  OptimizerMemory<Theta>& memory() {
    return std::visit(
        [this](auto& o) -> OptimizerMemory<Theta>& {
          if constexpr (requires { o.memory(); }) return o.memory();
          return nothing_;
        },
        choice_);
  }

 private:
  std::variant<Hold, Named...> choice_;
  OptimizerMemory<Theta> nothing_{.numbers = {}, .kinds = 0};
};

// The list.
template <class Theta>
using BasicAnyOptimizer = NamedOptimizer<Theta, GradientDescent, BasicAdam<Theta>, BasicRmsProp<Theta>>;
using AnyOptimizer = BasicAnyOptimizer<std::vector<double>>;

}  // namespace implicit_diffusion
