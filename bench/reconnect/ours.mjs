// This library, with its defaults but for how soon a connection counts as stable.
import { tradeFeedEvents$ } from '../../dist/index.js';

/** Streams for ever; `onFrame` gets the data of each frame, `onOpen` is called before the first of a connection. */
export const ours =
  (options) =>
  ({ baseUrl, onOpen, onFrame }) =>
    tradeFeedEvents$('market', { baseUrl, apiKey: 'bench-key', backoff: { stableAfterMs: 50 }, ...options }).subscribe(
      (event) => {
        if (event.type === 'opened') onOpen();
        if (event.type === 'frame') onFrame(event.data);
      },
    );
