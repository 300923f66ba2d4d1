import { startChild } from './child.mjs';

/**
 * Starts a sender of this folder in a separate process. Resolves when it listens, with its first message (`port`, `caFile`, `baseUrl`) and its process.
 *
 * @param name - `flood-sender`, `paced-sender`
 */
export const startSender = async (name, args) => {
  const child = startChild(new URL(`${name}.mjs`, import.meta.url), args);
  return { ...(await child.next('listening')), ...child };
};
