// The start fails because of another provider. Nothing of the testing module may keep this process alive.
import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { interval, map } from 'rxjs';
import { TradeFeedTestingModule } from 'rx-trade-feed/nestjs';

const sources = { market: interval(5).pipe(map(String)) };
const useFactory = () => new Promise((_, fail) => setTimeout(fail, 50, new Error('no database')));
const module = Test.createTestingModule({
  imports: [TradeFeedTestingModule.forRoot({ service: { sources } })],
  providers: [{ provide: 'other', useFactory }],
});
await module.compile().catch(({ message }) => console.log(message));
