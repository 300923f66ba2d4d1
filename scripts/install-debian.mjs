// Installs the programs from Debian that `npm run test:peers` and `npm run test:apps` need. CI does it once, before both: apt-get
// cannot run twice at the same time.
import { chromium } from '../test/apps/support.mjs';
import { install } from '../test/peers/packages.mjs';

install();
chromium();
