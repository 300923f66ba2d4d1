import { promises } from '../../scripts/site/promises.mjs';

export default { watch: ['../../bench/results/*.json', '../../reliability/results/*.json'], load: () => promises() };
