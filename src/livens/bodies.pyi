from livens.multibody import *
