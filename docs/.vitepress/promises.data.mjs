import { promises } from '../../scripts/site/promises.mjs';

export default { watch: ['../performance.md', '../reliability.md'], load: () => promises() };
