from livens.run.bridges.gym import *
