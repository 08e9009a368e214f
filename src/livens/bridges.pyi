from livens.run.bridges import *
