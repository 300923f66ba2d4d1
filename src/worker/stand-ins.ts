import type { Keeping } from './crossed-error.js';

const idOf = Symbol('kept');

/** Stands in a worker for what a function of the user's threw on the main thread; an error for an error, with its message. */
export const standIns: Keeping = {
  idOf: (thrown) => (Object(thrown) as { readonly [idOf]?: number })[idOf],
  byId: (id, message) => Object.assign(message === undefined ? {} : new Error(message), { [idOf]: id }),
};
