// The stationary law of a Markov chain on a finite set and its derivative, by linear systems with I - P.
//
//     law         pi' (I - P) = 0,  sum pi = 1
//     forward     gamma' (I - P) = b',  sum gamma = 0              b = dP_j' pi gives gamma = dpi / dtheta_j:
//                                                                  one solve a parameter
//     adjoint     (I - P) u = f - (pi . f) 1,  pi . u = pi . f     d(pi . f) / dtheta_j = pi' dP_j u:
//                                                                  one solve for all parameters
//
// u is (I - P + 1 pi')^-1 f. All three need one factorisation of I - P, which is singular and is made regular
//
//     dense       by a border of ones (implicit_function.hpp): [I - P', 1; 1', 0];
//     sparse      by pinning one state: its row and column are left out.
//                 The border, or the rank-one term, would fill the factors.
//
// A pinned I - P is an M-matrix with dominant rows and is factorised without exchanges. Its condition number is about
// the time in which the chain forgets, n^2 for a ring of n states: 10^12 for a million. So every solution is refined,
// with residuals summed in long double over flows between states,
//
//     sum_k P_ik (u_i - u_k)          sum_k (x_i P_ik - x_k P_ki)
//
// which keep the mass exactly: what is lost to conditioning in the first solve is won back.
#pragma once

#include "implicit_diffusion/finite/transition_matrix.hpp"

#include <memory>
#include <span>
#include <vector>

namespace implicit_diffusion {

// Throws a usage Error where some state cannot reach the first one.
void require_reachable(const TransitionMatrix& p);

class StationarySystem {
 public:
  StationarySystem();
  ~StationarySystem();
  StationarySystem(StationarySystem&&) noexcept;
  StationarySystem& operator=(StationarySystem&&) noexcept;

  // Factorises I - P and solves for the law. P is kept by reference until the next call. The pattern of a sparse P is
  // analysed when it is new. Throws a usage Error where some state cannot reach the others: then there may be many
  // laws.
  void factorise(const TransitionMatrix& p);

  std::span<const double> law() const { return law_; }
  // b sums to zero.
  void forward(std::span<const double> b, std::span<double> gamma) const;
  void adjoint(std::span<const double> f, std::span<double> u) const;

 private:
  enum class Side { right, left };  // of the unknown: (I - P) u = b, x' (I - P) = b'
  struct Factors;
  struct Bordered;
  struct Pinned;
  void solve_law();
  void refine(Side side, std::span<const double> b, std::span<double> x) const;

  std::unique_ptr<Factors> factors_;
  const TransitionMatrix* matrix_ = nullptr;
  std::vector<double> law_;
};

}  // namespace implicit_diffusion
