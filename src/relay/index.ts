export { createRelay, type Relay, type RelayClientStatus, type RelayStatus } from './relay.js';
export { relayHandler, type RelayHandlerOptions } from './relay-handler.js';
export type { Origins } from './cors.js';
export type { RelayOptions } from './relay-options.js';
export type { RelayReceiver, RelayResponse } from './client-messages.js';
export type { Joined } from './joining.js';
export type { RelayEvent } from './relay-event.js';
export type { RelayMessage } from './relay-message.js';
export { RelayFullError } from './relay-full-error.js';
