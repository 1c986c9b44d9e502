// The SQLite store, with the model beside it: each call is made to both, SQLite's answer counts,
// and the model's is what it should have been. Where they differ either is wrong.
#ifndef MATINS_TESTS_SIMULATOR_TWIN_SIMULATION_H_
#define MATINS_TESTS_SIMULATOR_TWIN_SIMULATION_H_

#include "lab/simulator.h"

namespace matins {

SimDatabaseMaker WithPrediction(SimDatabaseMaker asked, SimDatabaseMaker model);

}  // namespace matins

#endif  // MATINS_TESTS_SIMULATOR_TWIN_SIMULATION_H_
