// Prints how many files of the native package are loaded: with the library, and with a recording.
import { createRequire } from 'node:module';
import { of } from 'rxjs';
import { recordTo } from 'rx-trade-feed';

const { cache } = createRequire(import.meta.url);
const loaded = () => Object.keys(cache).filter((path) => path.includes('fs-native-extensions')).length;
const [path = ''] = process.argv.slice(2);
const before = loaded();
of().pipe(recordTo(path)).subscribe();
console.log(JSON.stringify([before > 0, loaded() > 0]));
