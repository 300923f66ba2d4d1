/** What is for the main thread alone: the key, and flags of the process, some of which a worker refuses. */
const hidden = new Set(['TRADE_FEED_API_KEY', 'TRADE_FEED_BASE_URL', 'NODE_OPTIONS']);

/** Gives a worker's own copy of the environment. */
export const workerEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !hidden.has(name)));
