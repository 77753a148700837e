// Filters whose every element sets its K cells and decrements others at random (sbf, ibf): their
// error rates over a finite stream with repeats. The models of the papers (stable_model.hpp,
// importance_model.hpp) are the limits of this one on endless streams of new keys.
#pragma once

#include "core/model/stream.hpp"

namespace streamfilter::cells_model {

struct Setting {
  double k, m;
  unsigned max;   // value that cells are set to
  double taken;   // probability that an element decrements a given cell of value 1
  bool by_value;  // for value j: 1/j of it; otherwise the same
};

// A cell is not zero if fewer than `max` decrements came since an element last set it. Other keys
// set it as often as the stream brings rows that have not come again since (Stream::fresh), K/m of
// them; so the probabilities are integrals over the age of the last setting. A new key is a false
// positive if its K cells are not zero; a repeat set them itself, when it came last. Assumptions:
// many cells, the K cells of a key independent.
Prediction predict(const Setting& setting, const Stream& stream) noexcept;

}  // namespace streamfilter::cells_model
