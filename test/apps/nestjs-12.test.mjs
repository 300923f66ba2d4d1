// docs/nestjs.md in a new application of NestJS 12, which uses ESM and vitest.
import { testGuide } from './nestjs/follow-guide.mjs';

testGuide({ version: 12, compiled: /from 'rx-trade-feed\/nestjs'/, passed: /Tests +2 passed/ });
