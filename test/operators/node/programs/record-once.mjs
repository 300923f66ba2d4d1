// Records one frame, and prints `recorded` or why it was refused.
import { of } from 'rxjs';
import { Frame, recordTo } from 'rx-trade-feed';

const [path = ''] = process.argv.slice(2);
of(new Frame('market', Buffer.from('{"number":-1}'), false, Date.now(), 1))
  .pipe(recordTo(path))
  .subscribe({
    error: ({ message }) => console.log(message),
    complete: () => console.log('recorded'),
  });
