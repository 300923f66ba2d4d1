// Installs the Node versions of the test matrix. CI runs it during the tests on Node 20, so that later checks find the versions installed.
import { installNode, nodeVersions } from './node-matrix.mjs';

for (const version of nodeVersions) installNode(version);
