// Installs the Node versions of the test matrix. CI does it beside the tests on Node 20, so that the next checks need not wait.
import { installNode, nodeVersions } from './node-matrix.mjs';

for (const version of nodeVersions) installNode(version);
