// This library with its defaults, except that a connection counts as stable earlier.
import { tradeFeedEvents$ } from '../../dist/index.js';

/** Streams until the process ends. `onOpen` is called for each connection, then `onFrame` with the data of each frame. */
export const ours =
  (options) =>
  ({ baseUrl, onOpen, onFrame }) =>
    tradeFeedEvents$('market', { baseUrl, apiKey: 'bench-key', backoff: { stableAfterMs: 50 }, ...options }).subscribe(
      (event) => {
        if (event.type === 'opened') onOpen();
        if (event.type === 'frame') onFrame(event.data);
      },
    );
