/**
 * Sends one feed from your server to many pages as Server-Sent Events, and resumes each page where it was.
 *
 * @packageDocumentation
 */
export { createRelay, type Relay } from './relay.js';
export type { RelayActivity, RelayClientStatus, RelayRefused, RelayStatus } from './relay-reports.js';
export { type Authorize, relayHandler, type RelayHandlerOptions, type RelayUser } from './relay-handler.js';
export type { AllowedOrigins } from './http.js';
export type { RelayTopic } from './topic.js';
export type { RelayedEvent, RelayedValue } from '../protocol/event.js';
export type { RelayOptions, RelayReceiver, RelayResponse } from './relay-options.js';
export type { JoinKind } from './resume.js';
export type { RelayMessage } from './relay-message.js';
export { RelayFullError, type RelayRefusal } from './refusals.js';
